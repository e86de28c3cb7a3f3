#include "execution.h"

#include <algorithm>
#include <optional>

#include "core/abi/dlpack_types.h"
#include "core/abi/graph_buffer.h"

namespace tenon::conformance {
namespace {

constexpr std::byte kGarbage{0xa5};

std::size_t byte_count(DType dtype, const std::vector<std::int64_t>& shape) {
  std::size_t bytes = size_of(dtype);
  for (std::int64_t size : shape) bytes *= static_cast<std::size_t>(size);
  return bytes;
}

/// True is stored as 1: whoever reads the bytes relies on it.
void require_canonical_bools(const ops::TensorView& output, std::size_t index) {
  if (!is_bool(output.dtype) || output.strides != row_major_strides(output.shape)) return;
  const auto* bytes = static_cast<const std::uint8_t*>(output.data);
  const auto wrong = std::find_if(bytes, bytes + byte_count(output.dtype, output.shape), [](std::uint8_t b) { return b > 1; });
  if (wrong != bytes + byte_count(output.dtype, output.shape))
    throw BackendFailure(fmt::format("output {}: a bool is stored as {}, not as 0 or 1", index, *wrong));
}

/// Whether the bytes are what the memory of outputs holds before a run.
bool is_garbage(const std::byte* bytes, std::size_t count) {
  return std::all_of(bytes, bytes + count, [](std::byte b) { return b == kGarbage; });
}

/// The first element of an output that holds what it held before the run; nothing where all were written.
std::optional<std::size_t> first_unwritten(const ops::TensorView& output) {
  const std::size_t size = size_of(output.dtype);
  const auto* bytes = static_cast<const std::byte*>(output.data);
  for (std::size_t at = 0; at < byte_count(output.dtype, output.shape); at += size)
    if (is_garbage(bytes + at, size)) return at / size;
  return {};
}

}  // namespace

Execution::Execution(const CompiledGroup& group, const TestGraph& graph, const std::vector<TestInput>& inputs)
    : graph_(graph), outputs_(graph.graph().outputs().size()) {
  const std::vector<std::int64_t> symbols = graph.bind(shapes_of(inputs));
  prepare_outputs(symbols);
  TestMemory workspace(&graph.device(), group.workspace_bytes(symbols));
  workspace.fill(kGarbage);
  workspace.send();

  std::vector<const void*> input_pointers;
  for (const TestInput& input : inputs) input_pointers.push_back(input.address());
  std::vector<void*> output_pointers;
  for (const TestOutput& output : outputs_) output_pointers.push_back(output.memory ? output.memory->address() : nullptr);
  const TenonCall call{sizeof(TenonCall), this, allocate_output, give_output};
  group.execute({sizeof(TenonExecuteArgs), input_pointers.data(), output_pointers.data(), symbols.data(), workspace.address(), nullptr, &call});
  graph.device().synchronise();
  workspace.fetch();
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    if (outputs_[i].memory) outputs_[i].memory->fetch();
    if (outputs_[i].given && !graph.device().is_host()) take_given(i);
  }
  require_untouched(workspace, inputs);
}

/// Brings a tensor of the backend's own to the host.
void Execution::take_given(std::size_t index) {
  TestOutput& output = outputs_[index];
  if (output.view.strides != row_major_strides(output.view.shape)) throw BackendFailure(fmt::format("output {} that it gave is not row-major", index));
  output.brought.resize(byte_count(output.view.dtype, output.view.shape));
  graph_.device().read(output.view.data, output.brought);
  output.view.data = output.brought.data();
}

Execution::~Execution() {
  for (const TestOutput& output : outputs_)
    if (output.given && output.given->deleter) output.given->deleter(output.given);
}

void Execution::prepare_outputs(const std::vector<std::int64_t>& symbols) {
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    const ir::Type& type = graph_.graph().type(graph_.graph().outputs()[i].value);
    outputs_[i].view.dtype = type.dtype;
    if (auto sizes = sizes_of(type, symbols)) place(i, std::move(*sizes));
  }
}

void Execution::place(std::size_t index, std::vector<std::int64_t> shape) {
  TestOutput& output = outputs_[index];
  output.memory = std::make_unique<TestMemory>(&graph_.device(), byte_count(output.view.dtype, shape));
  output.memory->fill(kGarbage);
  output.memory->send();
  output.view.data = output.memory->data();
  output.view.strides = row_major_strides(shape);
  output.view.shape = std::move(shape);
}

void* Execution::allocate_output(void* self, std::uint32_t index, const std::int64_t* sizes, std::size_t rank) {
  auto& run = *static_cast<Execution*>(self);
  if (index >= run.outputs_.size() || (rank && !sizes) || rank > TENON_MAX_RANK) return nullptr;
  run.place(index, {sizes, sizes + rank});
  return run.outputs_[index].memory->address();
}

std::int32_t Execution::give_output(void* self, std::uint32_t index, DLManagedTensorVersioned* tensor) {
  auto& run = *static_cast<Execution*>(self);
  if (!tensor || index >= run.outputs_.size() || run.outputs_[index].given) return TENON_INVALID_ARGUMENT;
  const DLTensor& t = tensor->dl_tensor;
  if (t.device.device_type != run.graph_.device().id().device_type) return TENON_INVALID_ARGUMENT;
  TestOutput& output = run.outputs_[index];
  if (t.ndim < 0 || static_cast<std::uint32_t>(t.ndim) > TENON_MAX_RANK || (t.ndim && !t.shape)) return TENON_INVALID_ARGUMENT;
  if (!t.data && std::find(t.shape, t.shape + t.ndim, 0) == t.shape + t.ndim) return TENON_INVALID_ARGUMENT;
  if (dtype_of(t.dtype) != output.view.dtype) return TENON_INVALID_ARGUMENT;
  output.given = tensor;
  output.view.data = static_cast<std::byte*>(t.data) + t.byte_offset;
  output.view.shape.assign(t.shape, t.shape + t.ndim);
  output.view.strides = t.strides ? std::vector<std::int64_t>(t.strides, t.strides + t.ndim) : row_major_strides(output.view.shape);
  return TENON_OK;
}

void Execution::require_untouched(const TestMemory& workspace, const std::vector<TestInput>& inputs) const {
  if (!workspace.intact()) throw BackendFailure("execute wrote outside of its workspace");
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (!inputs[i].unchanged()) throw BackendFailure(fmt::format("execute changed input {}", i));
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    if (!outputs_[i].view.data && !outputs_[i].memory) throw BackendFailure(fmt::format("output {} got no memory", i));
    if (outputs_[i].memory && !outputs_[i].memory->intact()) throw BackendFailure(fmt::format("execute wrote outside of output {}", i));
  }
}

void Execution::require_equal(const std::vector<ops::HostTensor>& expected, double tolerance) const {
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    const ops::TensorView& got = outputs_[i].view;
    if (got.shape != expected[i].shape)
      throw BackendFailure(fmt::format("output {} has shape [{}], not [{}]", i, fmt::join(got.shape, ", "), fmt::join(expected[i].shape, ", ")));
    const auto difference = ops::first_difference(got, expected[i].view(), tolerance);
    if (difference && outputs_[i].memory)
      if (const auto unwritten = first_unwritten(got)) throw BackendFailure(fmt::format("output {}: element {} was not written ({})", i, *unwritten, *difference));
    require_canonical_bools(got, i);
    if (difference) throw BackendFailure(fmt::format("output {}: {}", i, *difference));
  }
}

}  // namespace tenon::conformance
