// Writes to what a mask chooses: x[mask] = f(x[mask], y[mask]) takes the places of true elements, gathers, and scatters. Where nobody else needs what
// was computed of the gathered elements, it is a choice among elements that lie where they are.
#include <algorithm>
#include <map>
#include <set>

#include "core/ops/catalog.h"
#include "core/rewrite/op_properties.h"
#include "rule_set.h"

namespace tenon::canonical {
namespace {

using namespace rewrite;
using ir::Dim;
using ir::Shape;

/// One write to the places of a mask's true elements along one dimension, being put in terms of all elements.
class MaskedWrite {
 public:
  explicit MaskedWrite(Match& m) : m_(m), graph_(m.rewriter().graph()), self_(m.node().operands[0]) {}

  std::optional<ValueId> as_choice() {
    const ir::Node& write = m_.node();
    const auto dim = only_dim(write);
    if (write.operands.size() != 3 || !dim || flag(write, "accumulate")) return {};
    const auto mask = mask_of(write.operands[2]);
    const ir::Type type = graph_.type(self_);  // making nodes moves the types of values
    if (!mask || !(graph_.type(*mask).shape[0] == type.shape[*dim])) return {};
    mask_ = *mask, behind_ = type.rank() - *dim - 1;
    computed_.push_back(m_.id());
    const ValueId value = write.operands[1];
    if (!is_along_mask(value) || !can_be_whole(value) || !nobody_else_reads()) return {};
    for (NodeId id : unread_) m_.rewriter().erase(id);
    lay_out();
    Shape wide = lines_;
    wide.resize(lines_.size() + behind_, Dim(1));
    const ValueId written = m_.make("where", {in_shape(mask_, wide), whole(value), in_lines(self_)});
    return in_shape(written, type.shape);
  }

 private:
  static bool flag(const ir::Node& node, const char* name) {
    const bool* value = std::get_if<bool>(node.attribute(name));
    return value && *value;
  }

  /// The dimension that a node reads or writes at one index.
  std::optional<std::size_t> only_dim(const ir::Node& node) const {
    const auto* dims = std::get_if<std::vector<Dim>>(node.attribute("dims"));
    if (!dims || dims->size() != 1 || !dims->front().is_constant()) return {};
    const std::int64_t dim = dims->front().constant();
    return static_cast<std::size_t>(dim < 0 ? dim + static_cast<std::int64_t>(graph_.type(node.operands[0]).rank()) : dim);
  }

  /// The vector of bools whose true elements' places the index gives.
  std::optional<ValueId> mask_of(ValueId index) const {
    const ir::Node* column = m_.rewriter().definition(index);
    if (!column || column->op != "select" || graph_.type(column->operands[0]).rank() != 2) return {};
    const ir::Node* places = m_.rewriter().definition(column->operands[0]);
    if (!places || places->op != "nonzero" || graph_.type(places->operands[0]).rank() != 1) return {};
    return is_bool(graph_.type(places->operands[0]).dtype) ? std::optional(places->operands[0]) : std::nullopt;
  }

  bool is_literal(ValueId value) const { return graph_.value(value).kind == ir::ValueKind::literal; }

  /// Whether the value has an element for each true element of the mask; else it is the same for all.
  bool is_along_mask(ValueId value) const {
    if (is_literal(value)) return false;
    const Shape& shape = graph_.type(value).shape;
    return shape.size() > behind_ && !(shape[shape.size() - behind_ - 1] == Dim(1));
  }

  /// The tensor of which a node takes the elements at the mask's true ones.
  std::optional<ValueId> gathered(const ir::Node& node) const {
    if (node.op != "index" || node.operands.size() != 2 || graph_.type(node.operands[1]).rank() != 1) return {};
    const auto dim = only_dim(node);
    const ir::Type& type = graph_.type(node.operands[0]);
    if (!dim || type.rank() != *dim + behind_ + 1 || mask_of(node.operands[1]) != mask_) return {};
    return type.shape[*dim] == graph_.type(mask_).shape[0] ? std::optional(node.operands[0]) : std::nullopt;
  }

  /// Whether the node may be undefined for elements that the mask leaves out (a division by zero, the root of a negative number), of
  /// which NumPy would warn.
  bool may_warn(NodeId id) const {
    using P = ops::Primitive;
    const auto loop = ops::loop_of(graph_, id);
    return !loop || std::ranges::any_of(loop->element.instructions, [](const ops::Instruction& i) {
      const bool divides = i.op == P::div || i.op == P::floor_div || i.op == P::trunc_div || i.op == P::remainder || i.op == P::fmod;
      return divides || (i.op >= P::sqrt && i.op <= P::lgamma);
    });
  }

  /// Whether the value is made, element by element, of what is taken under the mask. Keeps the nodes that make it.
  bool can_be_whole(ValueId value) {
    if (!is_along_mask(value)) return true;
    const ir::Node* node = m_.rewriter().definition(value);
    if (!node) return false;
    if (gathered(*node)) return true;
    const NodeId id = graph_.value(value).node;
    if (!is_pointwise(*node) || may_raise(*node) || node->results.size() != 1 || may_warn(id)) return false;
    if (std::ranges::find(computed_, id) != computed_.end()) return true;
    computed_.push_back(id);
    return std::ranges::all_of(node->operands, [&](ValueId operand) { return can_be_whole(operand); });
  }

  bool nobody_else_reads() {
    return std::ranges::all_of(computed_, [&](NodeId id) { return id == m_.id() || is_read_for_write_alone(id); });
  }

  /// Whether whatever is made of what the node gives is made for the write, or for nobody.
  bool is_read_for_write_alone(NodeId id) {
    return std::ranges::all_of(graph_.node(id).results, [&](ValueId result) {
      const auto is_ours = [&](NodeId user) {
        if (std::ranges::find(computed_, user) != computed_.end() || unread_.contains(user)) return true;
        const ir::Node& node = graph_.node(user);
        if (!is_pure(graph_, node) || may_raise(node) || !is_read_for_write_alone(user)) return false;
        unread_.insert(user);
        return true;
      };
      return !m_.rewriter().is_output(result) && std::ranges::all_of(m_.rewriter().users(result), is_ours);
    });
  }

  /// The dimensions that the mask had before they were made one.
  void lay_out() {
    const ir::Node* reshape = m_.rewriter().definition(mask_);
    const bool merged = reshape && reshape->op == "reshape";
    lines_ = graph_.type(merged ? reshape->operands[0] : mask_).shape;
  }

  /// The value in that shape: before it was reshaped from it, where it was.
  ValueId in_shape(ValueId value, const Shape& shape) {
    if (graph_.type(value).shape == shape) return value;
    const ir::Node* reshape = m_.rewriter().definition(value);
    if (reshape && reshape->op == "reshape" && graph_.type(reshape->operands[0]).shape == shape) return reshape->operands[0];
    return m_.make("reshape", {value}, {{"shape", std::vector<Dim>(shape)}});
  }

  /// The value with the mask's own dimensions in place of the one.
  ValueId in_lines(ValueId value) {
    if (is_literal(value)) return value;
    Shape shape = graph_.type(value).shape;
    if (shape.size() <= behind_) return value;
    const auto at = shape.end() - static_cast<std::ptrdiff_t>(behind_) - 1;
    const bool same = *at == Dim(1);
    const auto place = shape.erase(at);
    if (same) shape.insert(place, lines_.size(), Dim(1));
    else shape.insert(place, lines_.begin(), lines_.end());
    return in_shape(value, shape);
  }

  /// The value for all elements, whether the mask is true of them or not.
  ValueId whole(ValueId value) {
    if (!is_along_mask(value)) return in_lines(value);
    const auto [found, is_new] = whole_.try_emplace(value.value);
    if (!is_new) return found->second;
    const ir::Node node = *m_.rewriter().definition(value);
    if (const auto taken = gathered(node)) {
      m_.rewriter().never_raises(graph_.value(value).node);  // a mask's true elements are in range
      return whole_[value.value] = in_lines(*taken);
    }
    std::vector<ValueId> operands;
    for (ValueId operand : node.operands) operands.push_back(whole(operand));
    return whole_[value.value] = m_.make(node.op, std::move(operands), node.attributes);
  }

  Match& m_;
  const ir::Graph& graph_;
  const ValueId self_;
  ValueId mask_{};
  std::size_t behind_ = 0;          // dimensions behind that of the places
  Shape lines_;                     // of the mask
  std::vector<NodeId> computed_;    // what is computed of elements under the mask, and the write
  std::set<NodeId> unread_;         // what is made of that, and nobody needs
  std::map<std::uint32_t, ValueId> whole_;
};

}  // namespace

RuleSet mask_rules() {
  return {
      // x[mask] = f(x[mask], y[mask]) where f is pointwise
      {"write_under_mask", op("index_put", {any(0), any(1), any(2)}).with_attributes(), [](Match& m) { return MaskedWrite(m).as_choice(); }},
  };
}

}  // namespace tenon::canonical
