#include "fusion/pruning.h"

#include <map>
#include <set>
#include <utility>
#include <vector>

namespace tenon::codegen {
namespace {

class Pruned {
 public:
  explicit Pruned(KernelStep step) : step_(std::move(step)), operations_(std::exchange(step_.kernel.operations, {})), buffers_(std::exchange(step_.kernel.buffers, {})), values_(std::exchange(step_.buffers, {})) {}

  KernelStep take() {
    for (Reduction& reduction : step_.kernel.reductions)
      for (OpId& element : reduction.elements) element = copy(element);
    for (Stage& stage : step_.kernel.stages)
      for (Store& store : stage.stores) store = {buffer(store.buffer), placed(store.offset), copy(store.value)};
    return std::move(step_);
  }

 private:
  OpId copy(OpId id) {
    if (const auto known = copies_.find(id); known != copies_.end()) return known->second;
    Operation op = operations_[id];
    for (OpId& a : op.args)
      if (a != kNoOp) a = copy(a);
    op.offset = placed(op.offset);
    if (op.kind == OperationKind::load) op.payload = buffer(static_cast<std::uint32_t>(op.payload));
    step_.kernel.operations.push_back(std::move(op));
    return copies_[id] = static_cast<OpId>(step_.kernel.operations.size() - 1);
  }

  Dim placed(Dim place) {
    std::set<OpId> computed;
    place.for_each_symbol([&](SymbolId s) {
      if (is_value(s)) computed.insert(s.value - kFirstValue);
    });
    std::vector<std::pair<OpId, OpId>> numbers;
    for (const OpId id : computed) numbers.emplace_back(id, copy(id));
    constexpr OpId kBeside = 1u << 20;  // no operation has such a number: numbers do not meet while some are old
    for (const auto& [old, made] : numbers) place = replace_symbol(place, value_symbol(old), Dim::symbol(value_symbol(made + kBeside)));
    for (const auto& [old, made] : numbers) place = replace_symbol(place, value_symbol(made + kBeside), Dim::symbol(value_symbol(made)));
    return place;
  }

  std::uint32_t buffer(std::uint32_t number) {
    const auto [known, fresh] = places_.try_emplace(number, static_cast<std::uint32_t>(step_.buffers.size()));
    if (fresh) step_.kernel.buffers.push_back(buffers_[number]), step_.buffers.push_back(values_[number]);
    return known->second;
  }

  KernelStep step_;
  const std::vector<Operation> operations_;
  const std::vector<Buffer> buffers_;
  const std::vector<ValueId> values_;
  std::map<OpId, OpId> copies_;
  std::map<std::uint32_t, std::uint32_t> places_;
};

}  // namespace

KernelStep pruned(KernelStep step) { return Pruned(std::move(step)).take(); }

}  // namespace tenon::codegen
