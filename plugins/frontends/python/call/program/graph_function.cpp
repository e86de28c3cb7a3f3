#include "python/call/program/graph_function.h"

#include "python/compat/object_layout.h"
#include "python/compat/waiting_signals.h"
#include "python/foreign/autocast.h"
#include "python/graph/given_tensors.h"
#include "python/library/torch_library.h"
#include "python/library/torch_modes.h"
#include "python/objects/graph_break.h"
#include "python/results/device_results.h"
#include "python/results/torch_results.h"
#include "python/session/collected_logs.h"
#include "python/session/ranges.h"

namespace tenon::python {

void GraphFunction::compile(std::span<PyObject* const> examples) {
  if (is_compiled()) return;
  say_in_steps("backward", 1);
  std::optional<Program> program = settings_.callable ? compile_with_callable(*captured_, settings_, name_, examples) : compile_natively(*captured_, settings_, rounding_);
  if (!program) {
    if (Ref interrupt = compat::take_interrupt()) compat::set_exception(std::move(interrupt));
    throw PythonError();
  }
  if (is_compiled()) return;  // another thread was faster
  program_ = std::make_unique<const Program>(std::move(*program));
  ready_.store(program_.get(), std::memory_order_release);
}

namespace {

/// A tensor of its own for what a callable gave.
Ref as_tensor_of(const TensorOutput& output, const GivenTensor& given) {
  if (is_as_said(given, output)) return given.tensor;
  void* data = nullptr;
  Ref made = checked(output.device.is_host() ? new_torch_tensor(*known_torch_library(), output.dtype, output.shape, output.strides, data)
                                             : new_device_tensor(output.device, output.dtype, output.shape, output.strides, data));
  copy_to(made.get(), given);
  return made;
}

}  // namespace

std::vector<Ref> GraphFunction::call(std::span<PyObject* const> inputs) const {
  const Program& program = *ready_.load(std::memory_order_acquire);
  const TorchState state = torch_state().value_or(TorchState{});
  const WithoutAutocast as_the_graph_says(state);  // a backward may be asked for under autocast
  const GradMode without_gradients(false, state.grad_enabled());
  const std::vector<GivenTensor> given = given_by_callable(checked(program.call(inputs).release()), program.places(), program.is_of_ops());
  std::vector<Ref> made;
  for (const TensorOutput& output : captured_->tensors) made.push_back(output.kind == TensorOutput::Kind::fresh ? as_tensor_of(output, given[output.index]) : Ref());
  return made;
}

int GraphFunction::traverse(visitproc visit, void* arg) const {
  Py_VISIT(settings_.callable.get());
  if (program_) Py_VISIT(program_->callable());
  return 0;
}

bool GraphFunction::run(void** data, std::span<const std::int64_t> symbols) const {
  std::optional<CallRange> range;
  if (profiling().takes_ranges()) [[unlikely]] range.emplace("backward of " + name_);
  TenonRunArgs args{};
  args.struct_size = sizeof args;
  args.inputs = data;
  args.outputs = data + input_count();
  if (!symbols.empty()) args.symbols = symbols.data();
  return tenon_program_run(ready_.load(std::memory_order_acquire)->native(), &args) == TENON_OK;
}

}  // namespace tenon::python
