#include "fusion/overwriting.h"

#include <algorithm>

namespace tenon::codegen {
namespace {

/// True when the kernel reads the buffer only at `offset`: each element then by the one point that writes there.
bool reads_only_at(const Kernel& kernel, std::size_t buffer, const Dim& offset) {
  return std::ranges::all_of(kernel.operations, [&](const Operation& op) { return op.kind != OperationKind::load || op.payload != buffer || op.offset == offset; });
}

/// Only the last store may go over what was read: what is stored before it may be read again in between.
std::vector<Overwriting> of_last_store(const KernelStep& step) {
  const Kernel& kernel = step.kernel;
  std::vector<Overwriting> found;
  if (kernel.scatter || !step.others.empty() || kernel.stages.empty() || kernel.stages.back().stores.empty()) return found;
  const Store& last = kernel.stages.back().stores.back();
  for (std::size_t i = 0; i < step.buffers.size(); ++i) {
    const ValueId read = step.buffers[i];
    const Buffer &from = kernel.buffers[i], &to = kernel.buffers[last.buffer];
    if (read == kPanel || read == kRow || from.written || size_of(from.dtype) != size_of(to.dtype)) continue;
    if (reads_only_at(kernel, i, last.offset)) found.push_back({step.buffers[last.buffer], read});
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
  if (auto* kernel = std::get_if<KernelStep>(&step)) return of_last_store(*kernel);
  auto* product = std::get_if<ContractionStep>(&step);
  if (!product || !product->epilogue) return {};
  auto found = of_last_store(*product->epilogue);
  std::erase_if(found, [&](const Overwriting& o) { return reads(product->a, o.read) || reads(product->b, o.read); });
  return found;
}

}  // namespace tenon::codegen
