#include "python/call/graph_function.h"

#include "python/call/run_frame.h"
#include "python/library/torch_library.h"
#include "python/objects/gil.h"
#include "python/objects/graph_break.h"
#include "python/results/torch_results.h"
#include "python/session/errors.h"

namespace tenon::python {

const Program& GraphFunction::program() {
  if (!program_) {
    program_ = compile_natively(*captured_, settings_);
    if (!program_) throw PythonError();
  }
  return *program_;
}

std::vector<Ref> GraphFunction::run(std::span<PyObject* const> inputs, std::span<const std::int64_t> symbols) {
  const Program& program = this->program();
  SmallArray<void*, 16> pointers(inputs.size() + captured_->graph().outputs().size() + 1);
  SmallArray<ScalarMemory, 4> scalars(inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) pointers[i] = const_cast<void*>(data_of(captured_->inputs[i], inputs[i], scalars[i].bytes));
  void** const outputs = pointers.data() + inputs.size();
  std::vector<Ref> tensors;
  for (const TensorOutput& output : captured_->tensors) {
    SmallArray<std::int64_t, 12> sizes(2 * output.varying_shape.size());
    std::span<const std::int64_t> shape = output.shape, strides = output.strides;
    if (!output.varying_shape.empty()) {
      evaluate_layout(output, symbols, sizes.data());
      shape = {sizes.data(), output.varying_shape.size()};
      strides = {sizes.data() + output.varying_shape.size(), output.varying_shape.size()};
    }
    PyObject* made = new_torch_tensor(*known_torch_library(), output.dtype, shape, strides, outputs[output.index]);
    if (!made) throw PythonError();
    tensors.push_back(Ref::steal(made));
  }
  TenonRunArgs args{};
  args.struct_size = sizeof args;
  args.inputs = pointers.data();
  args.outputs = outputs;
  if (!symbols.empty()) args.symbols = symbols.data();
  std::int32_t code = TENON_OK;
  {
    const GilReleased released;
    code = tenon_program_run(program.native(), &args);
  }
  if (code != TENON_OK) {
    set_host_error();
    throw PythonError();
  }
  return tensors;
}

}  // namespace tenon::python
