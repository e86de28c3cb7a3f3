#include "host/driver/tensor_road.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/ir/printer.h"
#include "core/ir/symbol_uses.h"
#include "core/memory/row_major.h"
#include "host/devices/event.h"
#include "host/devices/tensor_copy.h"
#include "host/machine/strided_copy.h"
#include "host/plugins/contact/crossing.h"

namespace tenon::host {
namespace {

std::string words_of(std::span<const std::int64_t> sizes) {
  std::string text = "[";
  for (std::size_t i = 0; i < sizes.size(); ++i) text += (i ? ", " : "") + std::to_string(sizes[i]);
  return text + "]";
}

std::span<const std::int64_t> shape_of(const DLTensor& tensor) { return {tensor.shape, static_cast<std::size_t>(tensor.ndim)}; }

std::vector<std::int64_t> strides_of(const DLTensor& tensor) {
  if (tensor.strides) return {tensor.strides, tensor.strides + tensor.ndim};
  return row_major_strides(shape_of(tensor));
}

std::byte* data_of(const DLTensor& tensor) { return static_cast<std::byte*>(tensor.data) + tensor.byte_offset; }

bool is_empty(std::span<const std::int64_t> sizes) { return std::find(sizes.begin(), sizes.end(), 0) != sizes.end(); }

/// True when both layouts put every element in the same place.
bool same_layout(std::span<const std::int64_t> sizes, std::span<const std::int64_t> a, std::span<const std::int64_t> b) {
  for (std::size_t i = 0; i < sizes.size(); ++i)
    if (sizes[i] != 1 && a[i] != b[i]) return is_empty(sizes);
  return true;
}

}  // namespace

TensorCall::TensorCall(Plan& plan, std::span<const DLTensor* const> inputs)
    : plan_(plan), graph_(plan.graph()), inputs_(inputs), symbols_(graph_.symbols().size(), 0), bound_(graph_.symbols().size(), false) {
  TENON_USER_CHECK(inputs.size() == graph_.inputs().size(), "the program takes {} inputs; given: {}", graph_.inputs().size(), inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) check_input(i);
  bind_symbols();
  require_bound_symbols();
  plan_.require_sizes(symbols_.data());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    check_sizes(i);
    place_input(i);
  }
  for (const ir::Output& output : graph_.outputs())
    if (output.kind == ir::OutputKind::update) check_update_target(output);
}

void TensorCall::check_input(std::size_t position) {
  const ir::Value& value = graph_.value(graph_.inputs()[position]);
  const ir::Type& type = graph_.type(graph_.inputs()[position]);
  TENON_USER_CHECK(inputs_[position], "input %{} is null", value.name);
  const DLTensor& tensor = *inputs_[position];
  const DLDevice device = ir::dlpack_device(type.device);
  if (!same_device(tensor.device, device)) {
    const DeviceList& devices = *plan_.environment().devices;
    throw Exception(Code::unsupported, fmt::format("input %{} is on {}; the program takes it on {}: move it there", value.name, devices.name_of(tensor.device), devices.name_of(device)));
  }
  const std::optional<DType> dtype = dtype_of(tensor.dtype);
  if (!dtype) throw Exception(Code::unsupported, fmt::format("input %{} is {}, which Tenon does not know; the program takes {}", value.name, name_of(tensor.dtype), name_of(type.dtype)));
  TENON_USER_CHECK(*dtype == type.dtype, "input %{} is {}; the program takes {}", value.name, name_of(*dtype), name_of(type.dtype));
  TENON_USER_CHECK(tensor.ndim == static_cast<std::int32_t>(type.rank()), "input %{} has {} dimensions; the program takes {}: {}", value.name, tensor.ndim,
                   type.rank(), ir::print_type(graph_, type));
  TENON_USER_CHECK(tensor.shape || tensor.ndim == 0, "input %{} has no shape", value.name);
  for (std::int64_t size : shape_of(tensor)) TENON_USER_CHECK(size >= 0, "input %{} has a negative size: {}", value.name, words_of(shape_of(tensor)));
  TENON_USER_CHECK(tensor.data || is_empty(shape_of(tensor)), "input %{} has no memory", value.name);
}

void TensorCall::bind_symbols() {
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    const ir::Type& type = graph_.type(graph_.inputs()[i]);
    for (std::size_t d = 0; d < type.rank(); ++d) {
      const SymbolId s = type.shape[d].as_symbol();
      if (!s || bound_[s.value]) continue;
      symbols_[s.value] = inputs_[i]->shape[d];
      bound_[s.value] = true;
      const ir::SymbolInfo& symbol = graph_.symbols()[s.value];
      TENON_USER_CHECK(symbols_[s.value] >= symbol.min && symbols_[s.value] <= symbol.max, "dimension {} of input %{} is {}; the program takes {} from {} to {}", d,
                       graph_.value(graph_.inputs()[i]).name, symbols_[s.value], symbol.name, symbol.min, symbol.max);
    }
  }
}

/// Ranges of symbols are what the graph was accepted for: none that is read may be without a value.
void TensorCall::require_bound_symbols() const {
  if (std::ranges::find(bound_, false) == bound_.end()) return;
  const std::vector<NodeId> definers = defining_nodes(graph_);
  const auto require = [&](SymbolId s) {
    TENON_USER_CHECK(bound_[s.value] || definers[s.value], "the symbol {} is the size of no input's dimension: use tenon_program_run, which takes symbols", graph_.symbols()[s.value].name);
  };
  for (ir::ValueId input : graph_.inputs()) visit_symbols(graph_.type(input), require);
  for (NodeId n : graph_.nodes()) visit_symbols(graph_, graph_.node(n), require);
}

void TensorCall::check_sizes(std::size_t position) const {
  const ir::Value& value = graph_.value(graph_.inputs()[position]);
  const ir::Type& type = graph_.type(graph_.inputs()[position]);
  const std::vector<std::int64_t> expected = evaluated(type.shape);
  const std::span<const std::int64_t> given = shape_of(*inputs_[position]);
  TENON_USER_CHECK(std::equal(given.begin(), given.end(), expected.begin(), expected.end()), "input %{} has the shape {}; the program takes {}, here {}", value.name,
                   words_of(given), ir::print_type(graph_, type), words_of(expected));
}

void TensorCall::place_input(std::size_t position) {
  const DLTensor& tensor = *inputs_[position];
  const ir::Type& type = graph_.type(graph_.inputs()[position]);
  const std::size_t element = size_of(type.dtype);
  const std::vector<std::int64_t> given = strides_of(tensor), wanted = evaluated(type.resolved_strides());
  const bool aligned = reinterpret_cast<std::uintptr_t>(data_of(tensor)) % std::min<std::size_t>(element, 8) == 0;
  if (aligned && same_layout(shape_of(tensor), given, wanted)) {
    input_pointers_.push_back(data_of(tensor));
    return;
  }
  TENON_USER_CHECK(aligned, "input %{} is not aligned to its elements: its address must be a multiple of {}", graph_.value(graph_.inputs()[position]).name, element);
  // The layout that the program wants may go backwards: the first element then is not the lowest address.
  std::int64_t lowest = 0;
  std::vector<std::int64_t> forwards = wanted;
  for (std::size_t d = 0; d < wanted.size(); ++d)
    if (wanted[d] < 0) lowest += (tensor.shape[d] - 1) * wanted[d], forwards[d] = -wanted[d];
  Device& device = device_of(tensor);
  copies_.push_back(make_tensor(device, plan_.environment().session, type.dtype, {shape_of(tensor).begin(), shape_of(tensor).end()}, forwards));
  std::byte* first = data_of(copies_.back()->dl_tensor) - lowest * static_cast<std::int64_t>(element);
  copy_tensor({device, first, wanted, device.current_stream()}, {device, data_of(tensor), given, device.current_stream()}, shape_of(tensor), element);
  input_pointers_.push_back(first);
}

void TensorCall::check_update_target(const ir::Output& output) const {
  const ir::Value& target = graph_.value(output.target);
  const DLTensor& tensor = *inputs_[target.index];
  TENON_USER_CHECK(!may_overlap_itself(shape_of(tensor), strides_of(tensor)), "input %{} is written to, and its elements share memory (strides {}): copy it first",
                   target.name, words_of(strides_of(tensor)));
}

std::vector<std::int64_t> TensorCall::evaluated(std::span<const ir::Dim> dims) const {
  std::vector<std::int64_t> values;
  for (const ir::Dim& dim : dims) values.push_back(dim.is_constant() ? dim.constant() : dim.evaluate(symbols_));
  return values;
}

void* TensorCall::allocate_output(std::uint32_t position, std::vector<std::int64_t> sizes) {
  const ir::Type& type = plan_.output_types()[position];
  std::optional<std::vector<std::int64_t>> strides;
  if (type.strides) strides = evaluated(*type.strides);
  TensorPointer& tensor = outputs_[position];
  tensor.reset();  // a backend that failed had asked for it
  Device& device = plan_.environment().devices->get(ir::dlpack_device(type.device));
  tensor = make_tensor(device, plan_.environment().session, type.dtype, std::move(sizes), std::move(strides));
  return tensor->dl_tensor.data;
}

void TensorCall::allocate_outputs() {
  outputs_.resize(graph_.outputs().size());
  output_pointers_.resize(graph_.outputs().size(), nullptr);
  std::vector<bool> late(graph_.symbols().size(), false);
  const std::vector<NodeId> definers = defining_nodes(graph_);
  for (std::size_t s = 0; s < definers.size(); ++s) late[s] = static_cast<bool>(definers[s]);
  for (std::uint32_t k = 0; k < outputs_.size(); ++k) {
    const ir::Type& type = graph_.type(graph_.outputs()[k].value);
    if (!type.is_tensor()) continue;
    bool depends_on_data = false;
    visit_symbols(type, [&](SymbolId s) { depends_on_data = depends_on_data || late[s.value]; });
    if (!depends_on_data) output_pointers_[k] = allocate_output(k, evaluated(type.shape));
  }
}

void TensorCall::run() {
  allocate_outputs();
  TenonRunArgs args{};
  args.struct_size = sizeof args;
  args.inputs = input_pointers_.data();
  args.symbols = symbols_.data();
  args.outputs = output_pointers_.data();
  args.context = this;
  args.allocate_output = [](void* context, std::uint32_t index, const std::int64_t* sizes, std::size_t rank) -> void* {
    try {
      return static_cast<TensorCall*>(context)->allocate_output(index, {sizes, sizes + rank});
    } catch (const std::exception&) {
      return nullptr;
    }
  };
  plan_.run(args);
  write_updates();
  wait_for_devices();
}

void TensorCall::wait_for_devices() const {
  for (Device* device : plan_.devices())
    if (!device->is_host()) Event(*device, device->current_stream()).wait();
}

void TensorCall::write_updates() {
  for (std::size_t k = 0; k < outputs_.size(); ++k) {
    const ir::Output& output = graph_.outputs()[k];
    if (output.kind != ir::OutputKind::update) continue;
    const DLTensor& to = *inputs_[graph_.value(output.target).index];
    const DLTensor& from = outputs_[k]->dl_tensor;
    Device& device = device_of(to);
    const auto placed = [&](const DLTensor& tensor, const std::vector<std::int64_t>& strides) { return PlacedTensor{device, data_of(tensor), strides, device.current_stream()}; };
    const std::vector<std::int64_t> to_strides = strides_of(to), from_strides = strides_of(from);
    copy_tensor(placed(to, to_strides), placed(from, from_strides), shape_of(from), size_of(graph_.type(output.value).dtype));
  }
}

void TensorCall::take_outputs(std::span<DLManagedTensorVersioned*> outputs) {
  std::size_t next = 0;
  for (std::size_t k = 0; k < outputs_.size(); ++k)
    if (graph_.outputs()[k].kind == ir::OutputKind::result) outputs[next++] = outputs_[k].release();
}

}  // namespace tenon::host
