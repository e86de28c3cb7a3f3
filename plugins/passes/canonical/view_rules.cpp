#include <algorithm>

#include "rule_set.h"

namespace tenon::canonical {
namespace {

using namespace rewrite;

/// The source, when a view that keeps the shape can only be the identity.
std::optional<ValueId> source_if_same_shape(Match& m) {
  return m.type().shape == m.type(0).shape ? std::optional(m[0]) : std::nullopt;
}

/// The last of two views of one kind, made of the first one's source; its attribute gives the shape of the result.
auto one_view(const char* name, const char* shape_attribute) {
  return [name, shape_attribute](Match& m) -> std::optional<ValueId> {
    const ir::Shape shape = m.type().shape;
    return m.make(name, {m[0]}, {{shape_attribute, std::vector<ir::Dim>(shape)}});
  };
}

/// The dimensions that a node names, from 0; nothing when they are symbolic.
std::optional<std::vector<std::size_t>> named_dims(const ir::Node& node, std::size_t rank) {
  const auto* dims = std::get_if<std::vector<ir::Dim>>(node.attribute("dims"));
  if (!dims) return {};
  std::vector<std::size_t> wrapped;
  for (const ir::Dim& d : *dims) {
    if (!d.is_constant()) return {};
    wrapped.push_back(static_cast<std::size_t>(d.constant() < 0 ? d.constant() + static_cast<std::int64_t>(rank) : d.constant()));
  }
  return wrapped;
}

std::vector<ir::Dim> as_attribute(const std::vector<std::size_t>& dims) {
  std::vector<ir::Dim> attribute;
  for (std::size_t d : dims) attribute.emplace_back(static_cast<std::int64_t>(d));
  return attribute;
}

/// permute by the identity = x
std::optional<ValueId> source_if_identity(Match& m) {
  const auto dims = named_dims(m.node(), m.type().rank());
  if (!dims || !std::ranges::is_sorted(*dims)) return {};
  return m[0];
}

/// permute(permute(x, p), q) = permute(x, p[q])
std::optional<ValueId> one_permutation(Match& m) {
  const std::size_t rank = m.type().rank();
  const ir::Node* inner = m.rewriter().definition(m.node().operands[0]);
  const auto first = named_dims(*inner, rank);
  const auto second = named_dims(m.node(), rank);
  if (!first || !second) return {};
  std::vector<std::size_t> joined;
  for (std::size_t d : *second) joined.push_back((*first)[d]);
  return m.make("permute", {m[0]}, {{"dims", as_attribute(joined)}});
}

/// flip(flip(x, a), b) flips the dimensions that are in one of a and b only.
std::optional<ValueId> one_flip(Match& m) {
  const std::size_t rank = m.type().rank();
  const ir::Node* inner = m.rewriter().definition(m.node().operands[0]);
  const auto first = named_dims(*inner, rank);
  const auto second = named_dims(m.node(), rank);
  if (!first || !second) return {};
  std::vector<std::size_t> joined;
  for (std::size_t d = 0; d < rank; ++d)
    if (std::ranges::count(*first, d) + std::ranges::count(*second, d) == 1) joined.push_back(d);
  if (joined.empty()) return m[0];
  return m.make("flip", {m[0]}, {{"dims", as_attribute(joined)}});
}

Pattern view(const char* name) { return op(name, {any(0)}).with_attributes(); }
Pattern view_of_view(const char* name) { return op(name, {view(name)}).with_attributes(); }

}  // namespace

RuleSet view_rules() {
  return {
      // reshape to the same shape = x
      {"reshape_same", view("reshape"), source_if_same_shape},
      // reshape(reshape(x)) = reshape(x): the row-major order of the elements is what a reshape keeps.
      {"reshape_reshape", view_of_view("reshape"), one_view("reshape", "shape")},
      {"permute_identity", view("permute"), source_if_identity},
      {"permute_permute", view_of_view("permute"), one_permutation},
      // expand to the same shape = x
      {"expand_same", view("expand"), source_if_same_shape},
      // expand(expand(x)) = expand(x)
      {"expand_expand", view_of_view("expand"), one_view("expand", "size")},
      // A slice as long as its source starts at its first element and steps by one.
      {"slice_whole", view("slice"), source_if_same_shape},
      {"flip_flip", view_of_view("flip"), one_flip},
      // A copy is the value itself: inside a graph there is no memory to tell them apart.
      {"clone", op("clone", {any(0)}).with_attributes(), [](Match& m) -> std::optional<ValueId> { return m[0]; }},
      // A graph is differentiated before it reaches a pass.
      {"detach", op("detach", {any(0)}).with_attributes(), [](Match& m) -> std::optional<ValueId> { return m[0]; }},
  };
}

}  // namespace tenon::canonical
