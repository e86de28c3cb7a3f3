#include "products/rounded_values.h"

#include <algorithm>
#include <map>
#include <memory>

#include "core/ir/outputs.h"
#include "schedule/product_tile.h"

namespace tenon::cuda {

using namespace codegen;

namespace {

/// What a plan does with a value.
struct Use {
  bool is_written = false;
  bool is_rounded = false;   // by a product that reads it
  bool is_exact = false;     // by who needs all of it, or writes it in another way
};

class RoundedValues {
 public:
  RoundedValues(Plan& plan, const ir::Graph& graph) : plan_(plan) {
    const std::vector<bool> outputs = ir::output_values(graph);
    for (Step& step : plan_.steps)
      if (auto* kernel = std::get_if<KernelStep>(&step)) note(*kernel);
    for (auto& [value, use] : uses_) use.is_exact = use.is_exact || (value < outputs.size() && outputs[value]);
  }

  void round() {
    for (Step& step : plan_.steps)
      if (auto* kernel = std::get_if<KernelStep>(&step)) round_stores(*kernel);
    for (Step& step : plan_.steps)
      if (auto* kernel = std::get_if<KernelStep>(&step)) tell(*kernel);
  }

 private:
  static bool is_rounded_early(const Use& use) { return use.is_written && use.is_rounded && !use.is_exact; }

  static std::vector<std::vector<ValueId>> runs_of(const KernelStep& step) {
    std::vector<std::vector<ValueId>> runs = step.others;
    runs.push_back(step.buffers);
    return runs;
  }

  static const Multiplied* rounding_product(const Kernel& kernel) {
    const auto* product = dynamic_cast<const Multiplied*>(kernel.schedule.get());
    return product && product->choices.rounds ? product : nullptr;
  }

  void note(KernelStep& step) {
    std::vector<OpId> rounded;
    if (rounding_product(step.kernel))
      if (const auto tile = product_tile(step.kernel, step.starts); tile && tile->rounds) rounded = {tile->a.copied, tile->b.copied};
    for (const std::vector<ValueId>& run : runs_of(step)) {
      for (std::uint32_t b = 0; b < run.size(); ++b) {
        if (step.kernel.buffers[b].row) continue;
        Use& use = uses_[run[b].value];
        const bool is_plain = !step.kernel.scatter && step.kernel.buffers[b].dtype == DType::f32, is_written = step.kernel.buffers[b].written;
        use.is_exact = use.is_exact || !is_plain || (is_written && use.is_written);
        use.is_written = use.is_written || is_written;
      }
      for (OpId id = 0; id < step.kernel.operations.size(); ++id) {
        const Operation& op = step.kernel.operations[id];
        if (op.kind != OperationKind::load || step.kernel.buffers[op.payload].row) continue;
        Use& use = uses_[run[op.payload].value];
        const bool is_operand = std::ranges::find(rounded, id) != rounded.end();
        use.is_rounded = use.is_rounded || is_operand, use.is_exact = use.is_exact || !is_operand || step.kernel.buffers[op.payload].written;
      }
    }
  }

  /// Of all runs of a kernel, or of none.
  void round_stores(KernelStep& step) {
    for (std::uint32_t b = 0; b < step.buffers.size(); ++b) {
      if (!step.kernel.buffers[b].written || step.kernel.buffers[b].row) continue;
      const std::vector<std::vector<ValueId>> runs = runs_of(step);
      if (std::ranges::all_of(runs, [&](const auto& run) { return is_rounded_early(uses_[run[b].value]); })) round_stores(step.kernel, b);
      else for (const auto& run : runs) uses_[run[b].value].is_exact = true;
    }
  }

  /// Half of the last place of tf32 is added, and what it does not hold cut off. A NaN stays what it is.
  static OpId rounded(Kernel& kernel, OpId value) {
    constexpr std::uint32_t kHalfOfLast = 1u << 12, kHeld = ~0u << 13;
    const auto add = [&](Operation op) {
      kernel.operations.push_back(std::move(op));
      return static_cast<OpId>(kernel.operations.size() - 1);
    };
    const auto primitive = [&](ops::Primitive p, DType dtype, OpId a, OpId b = kNoOp, OpId c = kNoOp) {
      Operation op{.kind = OperationKind::primitive, .primitive = p, .dtype = dtype};
      op.args[0] = a, op.args[1] = b, op.args[2] = c;
      return add(std::move(op));
    };
    const auto constant = [&](std::uint32_t bits) { return add({.kind = OperationKind::constant, .dtype = DType::i32, .payload = bits}); };
    const OpId more = primitive(ops::Primitive::add, DType::i32, primitive(ops::Primitive::bit_cast, DType::i32, value), constant(kHalfOfLast));
    const OpId held = primitive(ops::Primitive::bit_cast, DType::f32, primitive(ops::Primitive::bitwise_and, DType::i32, more, constant(kHeld)));
    return primitive(ops::Primitive::select, DType::f32, primitive(ops::Primitive::isnan, DType::b8, value), value, held);
  }

  static void round_stores(Kernel& kernel, std::uint32_t buffer) {
    for (Stage& stage : kernel.stages)
      for (Store& store : stage.stores)
        if (store.buffer == buffer) store.value = rounded(kernel, store.value);
  }

  void tell(KernelStep& step) {
    const Multiplied* product = rounding_product(step.kernel);
    if (!product) return;
    Multiplied::Choices choices = product->choices;
    for (const ValueId v : step.buffers) choices.rounded.push_back(is_rounded_early(uses_[v.value]));
    step.kernel.schedule = std::make_shared<Multiplied>(std::move(choices));
  }

  Plan& plan_;
  std::map<std::uint32_t, Use> uses_;  // by value
};

}  // namespace

void round_where_written(Plan& plan, const ir::Graph& graph) { RoundedValues(plan, graph).round(); }

}  // namespace tenon::cuda
