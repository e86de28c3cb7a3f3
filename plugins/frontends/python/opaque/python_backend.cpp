#include "python/opaque/python_backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "python/opaque/generator_artefact.h"
#include "python/opaque/planned_tensors.h"
#include "python/opaque/python_artefact.h"
#include "python/opaque/torch_artefact.h"
#include "python/library/numpy_state.h"
#include "python/metadata/strides.h"
#include "python/objects/gil.h"
#include "python/objects/graph_break.h"
#include "python/opaque/opaque_call.h"
#include "python/results/torch_results.h"
#include "tenon/backend.h"

namespace tenon::python {
namespace {

/// A tensor among the inputs or outputs of the group: where its pointer is and how it lies.
struct Slot {
  TypeView type;
  std::uint32_t index = TENON_NO_NODE;  // among the inputs or outputs

  ir::Device device() const { return {static_cast<std::uint8_t>(type.device_kind()), type.device_index()}; }
};

Ref owned_copy(TensorKind kind, PyObject* tensor) {
  return checked(PyObject_CallMethod(tensor, kind == TensorKind::torch ? "clone" : "copy", nullptr));
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

class OpaqueArtefact final : public PythonArtefact {
 public:
  OpaqueArtefact(const GraphView& graph, NodeView node, std::shared_ptr<OpaqueCall> call)
      : bytes_(graph.bytes().data, graph.bytes().data + graph.bytes().size), graph_({bytes_.data(), bytes_.size()}), call_(std::move(call)) {
    for (ValueView operand : node.operands())
      if (operand.type().is_tensor()) operands_.push_back(input_slot(operand));
    for (ValueView result : node.results())
      if (result.type().is_tensor()) results_.push_back({TypeView(&graph_, result.type().id()), output_index(result)});
  }
  ~OpaqueArtefact() override { drop(call_); }

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

  std::string name() const override { return call_->target(); }

  void run(const TenonExecuteArgs& args) override {
    std::vector<Ref> tensors;
    std::vector<PyObject*> given;
    for (std::size_t i = 0; i < operands_.size(); ++i) {
      const Slot& slot = operands_[i];
      void* data = const_cast<void*>(args.inputs[slot.index]);
      Ref tensor = tensor_over(call_->operands[i], slot.device(), slot.type.dtype(), slot.type.shape(args.symbols), slot.type.strides(args.symbols), data, false);
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
      if (is_permuted(call_->results[i].order)) found[i] = permuted(found[i].get(), call_->results[i].order);
      put_output(args, slot.index, found[i].get(), call_->results[i].dtype, slot.device(), slot.type.shape(args.symbols));
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
      TENON_DYNAMIC_SHAPES | TENON_COMPILE_REENTRANT | TENON_EXECUTE_REENTRANT | TENON_STRIDED_INPUTS | TENON_CALLING_THREAD;

  void claim(const GraphView& graph, Claims& claims) override {
    claim_torch_nodes(graph, claims);
    for (NodeView node : graph.nodes()) {
      if (node.op() != "opaque") continue;
      if (!call_of(node)) {
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
      if (auto draw = make_generator_artefact(graph, node, call)) return draw;
      return std::make_unique<OpaqueArtefact>(graph, node, std::move(call));
    }
    return make_torch_artefact(graph);
  }
};

}  // namespace

namespace {

/// The host, then the kinds of device that graphs have been on.
struct Served {
  std::array<DLDevice, 256> kinds{{{kDLCPU, 0}}};
  TenonBackend table{};
};

Served& served() {
  static Served& all = *new Served;
  return all;
}

}  // namespace

void let_python_serve(std::uint8_t kind) {
  Served& all = served();
  const std::span known(all.kinds.data(), all.table.device_count);
  if (std::ranges::any_of(known, [&](const DLDevice& d) { return d.device_type == kind; })) return;
  all.kinds[known.size()] = {static_cast<DLDeviceType>(kind), -1};
  ++all.table.device_count;
}

const TenonPlugin* python_backend() {
  static constexpr detail::PluginWords kWords{kPythonBackend, "1.0", "runs calls of library functions that no op describes, in the Python process that recorded them"};
  static const TenonPlugin* plugin = [] {
    TenonPlugin& made = detail::backend_plugin<PythonBackend>(kWords);
    made.abi = TENON_ABI_NEWEST;
    Served& all = served();
    all.table = *made.backend;
    all.table.devices = all.kinds.data();
    made.backend = &all.table;
    return &made;
  }();
  return plugin;
}

}  // namespace tenon::python
