#include "fusion/overwriting.h"

#include <algorithm>
#include <unordered_map>

namespace tenon::codegen {
namespace {

/// True when the kernel reads the buffer only at `offset`: each element then by the one point that writes there.
bool reads_only_at(const Kernel& kernel, std::size_t buffer, const Dim& offset) {
  return std::ranges::all_of(kernel.operations, [&](const Operation& op) { return op.kind != OperationKind::load || op.payload != buffer || op.offset == offset; });
}

/// Buffers of a kernel, by number, one of which is written over the other.
struct Pair {
  std::size_t written, read;
};

/// Only stores of the last stage may go over what was read: what is stored before may be read again in between. At a point of that stage
/// all values are computed before the first is stored.
std::vector<Pair> of_last_stage(const Kernel& kernel) {
  std::vector<Pair> found;
  if (kernel.scatter || kernel.stages.empty()) return found;
  for (const Store& store : kernel.stages.back().stores)
    for (std::size_t i = 0; i < kernel.buffers.size(); ++i) {
      const Buffer &from = kernel.buffers[i], &to = kernel.buffers[store.buffer];
      if (from.written || from.row || to.row || size_of(from.dtype) != size_of(to.dtype) || !reads_only_at(kernel, i, store.offset)) continue;
      found.push_back({store.buffer, i});
    }
  return found;
}

/// Runs of a kernel start together: what one of them writes over, the others may not read.
std::vector<Overwriting> of_runs(const KernelStep& step) {
  std::vector<const std::vector<ValueId>*> runs{&step.buffers};
  for (const auto& other : step.others) runs.push_back(&other);
  std::unordered_map<std::uint32_t, std::size_t> readers;
  for (const auto* run : runs)
    for (ValueId value : *run) ++readers[value.value];
  std::vector<Overwriting> found;
  for (const auto& [written, read] : of_last_stage(step.kernel))
    for (const auto* run : runs) {
      const ValueId value = (*run)[read];
      if (value != kPanel && value != kRow && readers[value.value] == 1) found.push_back({(*run)[written], value});
    }
  return found;
}

bool reads(const MatrixOperand& operand, ValueId value) {
  if (!operand.pack && operand.value == value) return true;
  const auto in = [&](const std::optional<KernelStep>& part) { return part && std::ranges::find(part->buffers, value) != part->buffers.end(); };
  return in(operand.pack) || in(operand.table);
}

}  // namespace

std::vector<Overwriting> overwritings(const Step& step) {
  if (auto* kernel = std::get_if<KernelStep>(&step)) return of_runs(*kernel);
  auto* product = std::get_if<ContractionStep>(&step);
  if (!product || !product->epilogue) return {};
  auto found = of_runs(*product->epilogue);
  std::erase_if(found, [&](const Overwriting& o) { return reads(product->a, o.read) || reads(product->b, o.read); });
  return found;
}

}  // namespace tenon::codegen
