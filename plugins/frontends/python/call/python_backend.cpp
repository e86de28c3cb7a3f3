#include "python/call/python_backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "python/compat/object_layout.h"
#include "python/compat/waiting_signals.h"
#include "python/library/numpy_state.h"
#include "python/library/torch_library.h"
#include "python/metadata/strides.h"
#include "python/objects/gil.h"
#include "python/objects/graph_break.h"
#include "python/opaque/opaque_call.h"
#include "python/results/array_results.h"
#include "python/results/torch_results.h"
#include "python/segments/exception_text.h"
#include "tenon/backend.h"

namespace tenon::python {
namespace {

/// A tensor among the inputs or outputs of the group: where its pointer is and how it lies.
struct Slot {
  TypeView type;
  std::uint32_t index = TENON_NO_NODE;  // among the inputs or outputs
};

Ref owned_copy(TensorKind kind, PyObject* tensor) {
  return checked(PyObject_CallMethod(tensor, kind == TensorKind::torch ? "clone" : "copy", nullptr));
}

Ref tensor_over(TensorKind kind, DType dtype, std::span<const std::int64_t> shape, std::span<const std::int64_t> strides, void* data, bool writeable) {
  switch (kind) {
    case TensorKind::torch: return torch_tensor_over(*known_torch_library(), dtype, shape, strides, data);
    case TensorKind::array: return array_over(dtype, shape, strides, data, writeable);
    case TensorKind::scalar: break;
  }
  return Ref::steal(new_array_scalar(dtype, data));
}

std::string text_of(DType dtype, std::span<const std::int64_t> shape) { return fmt::format("{}[{}]", name_of(dtype), fmt::join(shape, ", ")); }

std::vector<std::int64_t> shape_of(PyObject* result) {
  auto read = read_spec(result);
  if (const auto* odd = std::get_if<std::string>(&read)) throw Failure(TENON_PLUGIN_FAILED, "it gave " + *odd);
  return std::get<TensorSpec>(read).shape;
}

bool is_permuted(const MemoryOrder& order) { return !std::ranges::is_sorted(order); }

Ref permuted(PyObject* tensor, const MemoryOrder& order) {
  return checked(PyObject_CallMethod(tensor, "permute", "O", integer_tuple(order).get()));
}

/// A tensor that lies in that order, from one whose dimensions come in it.
Ref laid_out(PyObject* tensor, const MemoryOrder& order) {
  Ref dense = checked(PyObject_CallMethod(tensor, "contiguous", nullptr));
  return is_permuted(order) ? permuted(dense.get(), inverse(order)) : std::move(dense);
}

/// Copies a result into planned memory, which is row-major.
void store(PyObject* result, const OpaqueResult& recorded, std::span<const std::int64_t> shape, void* target) {
  auto read = read_spec(result);
  if (const auto* odd = std::get_if<std::string>(&read)) throw Failure(TENON_PLUGIN_FAILED, "it gave " + *odd);
  const TensorSpec& spec = std::get<TensorSpec>(read);
  if (spec.dtype != recorded.dtype || !std::ranges::equal(spec.shape, shape))
    throw Failure(TENON_PLUGIN_FAILED, fmt::format("it gave {} where {} was recorded", text_of(spec.dtype, spec.shape), text_of(recorded.dtype, shape)));
  const std::size_t bytes = byte_count(spec.dtype, shape);
  alignas(16) unsigned char scratch[16];
  if (spec.kind == TensorKind::scalar || is_row_major(spec.shape, spec.strides)) {
    if (bytes) std::memcpy(target, data_of(spec, result, scratch), bytes);
    return;
  }
  Ref to = tensor_over(spec.kind, spec.dtype, spec.shape, row_major(spec.shape), target, true);
  if (spec.kind == TensorKind::torch)
    checked(PyObject_CallMethod(to.get(), "copy_", "O", result));
  else
    checked(PyArray_CopyInto(reinterpret_cast<PyArrayObject*>(to.get()), reinterpret_cast<PyArrayObject*>(result)));
}

class OpaqueArtefact final : public Artefact {
 public:
  OpaqueArtefact(const GraphView& graph, NodeView node, std::shared_ptr<OpaqueCall> call)
      : bytes_(graph.bytes().data, graph.bytes().data + graph.bytes().size), graph_({bytes_.data(), bytes_.size()}), call_(std::move(call)) {
    for (ValueView operand : node.operands())
      if (operand.type().is_tensor()) operands_.push_back(input_slot(operand));
    for (ValueView result : node.results())
      if (result.type().is_tensor()) results_.push_back({TypeView(&graph_, result.type().id()), output_index(result)});
  }
  ~OpaqueArtefact() override {
    if (!Py_IsInitialized()) {  // what Python held is gone with it
      new std::shared_ptr<OpaqueCall>(std::move(call_));
      return;
    }
    const GilHeld gil;
    call_.reset();
  }

  void execute(const TenonExecuteArgs& args) override {
    const GilHeld gil;
    const compat::SignalsWait waiting;  // what a handler raises is no failure of the call
    try {
      run(args);
    } catch (const PythonError&) {
      throw Failure(TENON_PLUGIN_FAILED, fmt::format("{} raised {}", call_->target(), type_and_text(compat::take_exception().get())));
    } catch (const GraphBreak& odd) {
      throw Failure(TENON_PLUGIN_FAILED, fmt::format("{}: {}", call_->target(), odd.reason()));
    }
  }

 private:
  Slot input_slot(ValueView value) {
    if (!value.is_input()) throw Failure(TENON_UNSUPPORTED, "an opaque call of what is no tensor");
    return {TypeView(&graph_, value.type().id()), value.index()};
  }

  std::uint32_t output_index(ValueView value) const {
    for (std::uint32_t i = 0; i < graph_.outputs().size(); ++i)
      if (graph_.outputs()[i].value.id() == value.id()) return i;
    return TENON_NO_NODE;
  }

  std::vector<Ref> called(PyObject* const* tensors) const {
    std::optional<NotedErrors> noted;
    if (call_->target().starts_with("numpy.")) noted.emplace(call_->handling);
    return call_->run(tensors);
  }

  void run(const TenonExecuteArgs& args) {
    std::vector<Ref> tensors;
    std::vector<PyObject*> given;
    for (std::size_t i = 0; i < operands_.size(); ++i) {
      const Slot& slot = operands_[i];
      void* data = const_cast<void*>(args.inputs[slot.index]);
      Ref tensor = tensor_over(call_->operands[i], slot.type.dtype(), slot.type.shape(args.symbols), slot.type.strides(args.symbols), data, false);
      if (std::ranges::find(call_->numbers, i) != call_->numbers.end()) tensor = checked(PyObject_CallMethod(tensor.get(), "item", nullptr));
      if (!call_->orders[i].empty()) tensor = laid_out(tensor.get(), call_->orders[i]);
      if (call_->may_keep_arguments && call_->operands[i] != TensorKind::scalar) tensor = owned_copy(call_->operands[i], tensor.get());
      given.push_back(tensor.get());
      tensors.push_back(std::move(tensor));
    }
    std::vector<Ref> found = called(given.data());
    if (found.size() != results_.size())
      throw Failure(TENON_PLUGIN_FAILED, fmt::format("{} gave {} tensors where {} were recorded", call_->target(), found.size(), results_.size()));
    for (std::size_t i = 0; i < results_.size(); ++i) {
      const Slot& slot = results_[i];
      if (slot.index == TENON_NO_NODE) continue;
      std::vector<std::int64_t> shape = slot.type.shape(args.symbols);
      if (is_permuted(call_->results[i].order)) found[i] = permuted(found[i].get(), call_->results[i].order);
      void* target = args.outputs[slot.index];
      if (std::ranges::any_of(shape, [](std::int64_t size) { return size < 0; })) {  // depends on data
        shape = shape_of(found[i].get());
        target = args.call->allocate_output(args.call->self, slot.index, shape.data(), shape.size());
        if (!target) throw Failure(TENON_OUT_OF_MEMORY, "the host gives no memory for what " + call_->target() + " found");
      }
      store(found[i].get(), call_->results[i], shape, target);
    }
  }

  std::vector<std::uint8_t> bytes_;  // the group's buffer outlives compile
  GraphView graph_;
  std::shared_ptr<OpaqueCall> call_;
  std::vector<Slot> operands_, results_;
};

std::shared_ptr<OpaqueCall> call_of(NodeView node) { return OpaqueCall::find(node.integer("handle")); }

class PythonBackend final : public Backend {
 public:
  static constexpr std::uint32_t kFlags =
      TENON_DYNAMIC_SHAPES | TENON_COMPILE_REENTRANT | TENON_EXECUTE_REENTRANT | TENON_STRIDED_INPUTS | TENON_CALLING_THREAD | TENON_ASK_ONCE;

  void claim(const GraphView& graph, Claims& claims) override {
    for (NodeView node : graph.nodes()) {
      if (node.op() != "opaque") {
        claims.refuse(node.id(), "op", "it runs opaque calls only");
      } else if (!call_of(node)) {
        claims.refuse(node.id(), "op", "the opaque call was recorded by another process, or is gone");
      } else {
        const std::uint32_t id = node.id();
        claims.claim({&id, 1});
      }
    }
  }

  std::unique_ptr<Artefact> compile(const GraphView& graph, std::span<const DLTensor* const>, const std::string&) override {
    for (NodeView node : graph.nodes()) {
      if (node.op() != "opaque") continue;
      auto call = call_of(node);
      if (!call) throw Failure(TENON_NOT_FOUND, "the opaque call is gone");
      return std::make_unique<OpaqueArtefact>(graph, node, std::move(call));
    }
    throw Failure(TENON_INVALID_ARGUMENT, "a group without an opaque call");
  }
};

}  // namespace

const TenonPlugin* python_backend() {
  static constexpr detail::PluginWords kWords{kPythonBackend, "1.0", "runs calls of library functions that no op describes, in the Python process that recorded them"};
  static const TenonPlugin* plugin = [] {
    TenonPlugin& made = detail::backend_plugin<PythonBackend>(kWords);
    made.abi = TENON_ABI_NEWEST;
    return &made;
  }();
  return plugin;
}

}  // namespace tenon::python
