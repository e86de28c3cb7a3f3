// Copies of a tensor to another device.
#include "core/ops/notation/family.h"
#include "core/ops/reference/loops.h"

namespace tenon::ops {
namespace {

/// A kernel, not a body: no rewriting and no fusion may take a copy between devices for arithmetic.
Op to_device_op() {
  Op op;
  op.name = "to_device";
  op.schema = "(Tensor self, *, str device) -> Tensor";
  op.traits.copies = true;
  op.infer = [](const OpQuery& q) -> Result<infer::Types> {
    infer::require_operands(q, 1, 1);
    const std::optional<ir::Device> device = q.device("device");
    TENON_USER_CHECK(device, "attribute 'device' is missing");
    return infer::Types{ir::Type::tensor(q.type(0).dtype, q.type(0).shape, *device)};
  };
  op.kernel = [](KernelCall& call) { reference::copy_tensor(call.inputs[0], call.outputs[0]); };
  op.grad = [](NodeBuilder& b, const OpQuery& q, std::span<const ir::ValueId>, std::span<const ir::ValueId> gradients) {
    return Values{b.to_device(gradients[0], q.type(0).device)};
  };
  op.samples = [] {
    const ir::Attributes to_host = {{"device", ir::device_text({})}};
    std::vector<Sample> all;
    for (DType t : {DType::b8, DType::i64, DType::f16, DType::f32, DType::f64})
      all.push_back({.name = std::string(name_of(t)), .operands = {{.dtype = t, .shape = {3, 4}}}, .attributes = to_host});
    all.push_back({.name = "scalar", .operands = {{.shape = {}}}, .attributes = to_host});
    all.push_back({.name = "nothing", .operands = {{.shape = {0, 3}}}, .attributes = to_host});
    all.push_back({.name = "strided", .operands = {{.shape = {4, 6}, .strides = {{1, 4}}}}, .attributes = to_host});
    return all;
  };
  return op;
}

}  // namespace

Family device_ops() { return {to_device_op()}; }

}  // namespace tenon::ops
