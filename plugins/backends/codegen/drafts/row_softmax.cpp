#include "drafts/row_softmax.h"

#include <limits>

namespace tenon::codegen {

using P = ops::Primitive;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

class Pattern {
 public:
  explicit Pattern(const Kernel& kernel) : kernel_(kernel) {}

  std::optional<RowSoftmax> find() const {
    RowSoftmax found;
    OpId stored = kernel_.stages.back().stores[0].value;
    const DType dtype = at(stored).dtype;
    const bool chooses = is(stored, P::select);
    const OpId hidden = at(stored).args[0];
    if (chooses && !is_number(at(at(stored).args[1]), 0)) return {};
    if (chooses) stored = at(stored).args[2];
    if (!is(stored, P::div) || !is(at(stored).args[0], P::exp)) return {};
    const OpId weight = at(stored).args[0], difference = at(weight).args[0];
    if (!is(difference, P::sub)) return {};
    found.score = at(difference).args[0];
    const auto largest = reduction(at(difference).args[1], P::maximum, found.score), sum = reduction(at(stored).args[1], P::add, weight);
    if (!largest || !sum || at(found.score).dtype != dtype || (dtype != DType::f32 && dtype != DType::f64)) return {};
    if (chooses && !says_hidden(hidden, found.score)) return {};
    if (reduction_dependents(kernel_.operations)[found.score]) return {};
    found.largest = *largest, found.sum = *sum, found.zeroes_hidden = chooses;
    return found;
  }

 private:
  const Operation& at(OpId id) const { return kernel_.operations[id]; }
  bool is(OpId id, P p) const { return at(id).kind == OperationKind::primitive && at(id).primitive == p; }

  /// The reduction that the operation is the result of, if it combines `element` alone in that way.
  std::optional<std::uint32_t> reduction(OpId id, P combines, OpId element) const {
    if (at(id).kind != OperationKind::reduced || at(id).dtype != at(element).dtype) return {};
    const auto number = static_cast<std::uint32_t>(at(id).payload >> 16);
    const Reduction& r = kernel_.reductions[number];
    if (r.elements != std::vector<OpId>{element} || r.reducer.combine.results.size() != 1 || r.reducer.finish.results.size() != 1) return {};
    const bool plain = r.reducer.finish.instructions[r.reducer.finish.results[0]].op == P::parameter;
    return plain && r.reducer.combine.instructions[r.reducer.combine.results[0]].op == combines ? std::optional(number) : std::nullopt;
  }

  bool says_hidden(OpId id, OpId score) const {
    if (!is(id, P::eq)) return false;
    const OpId* side = at(id).args;
    return (reduction(side[0], P::maximum, score) && is_number(at(side[1]), -kInfinity)) || (reduction(side[1], P::maximum, score) && is_number(at(side[0]), -kInfinity));
  }

  const Kernel& kernel_;
};

}  // namespace

std::optional<RowSoftmax> softmax_of(const Kernel& kernel) { return Pattern(kernel).find(); }

}  // namespace tenon::codegen
