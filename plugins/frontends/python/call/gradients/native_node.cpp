#include "python/call/gradients/native_node.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <utility>

#include "core/base/error.h"
#include "python/call/program/run_frame.h"
#include "python/call/gradients/passing_nodes.h"
#include "python/call/gradients/tangent.h"
#include "python/compat/object_layout.h"
#include "python/library/kept_memory.h"
#include "python/library/torch_layout.h"
#include "python/library/torch_library.h"
#include "python/metadata/strides.h"
#include "python/objects/gil.h"
#include "python/objects/graph_break.h"
#include "python/objects/imported.h"
#include "python/objects/sequences.h"
#include "python/results/torch_results.h"
#include "python/segments/exception_text.h"

namespace tenon::python {
namespace {

/// What Python raised, as torch's engine takes it.
[[noreturn]] void throw_python_error() { throw std::runtime_error(text_of_exception(compat::take_exception().get())); }

/// Runs with the GIL what may raise in Python.
template <class Body>
auto with_python(Body body) {
  const GilHeld gil;
  try {
    return body();
  } catch (const PythonError&) {
    throw_python_error();
  } catch (const GraphBreak& stop) {
    throw std::runtime_error(stop.reason());
  }
}

class SegmentBody;

/// Where the parts of a new node come from: a call of the segment, or a run of the gradients of another node.
template <class Sources>
void add_nodes_from(const std::shared_ptr<SegmentBackward>& backward, const Sources& sources, std::span<const std::int64_t> symbols);

class SegmentBody final : public NodeBody {
 public:
  std::shared_ptr<SegmentBackward> backward;
  std::size_t node = 0;
  std::vector<KeptMemory> kept;        // kept inputs, then kept tensors
  std::vector<ScalarMemory> scalars;   // by kept input, where some are scalars
  std::vector<std::int64_t> symbols;
  bool released = false;

  const char* name() const override { return "SegmentBackward"; }

  void release() noexcept override {
    if (!backward->node(node).part.asked_once) return;
    kept.clear();
    released = true;
  }

  Ref apply_to_others(PyObject* node, const std::vector<Ref>& given) override {
    static PyObject* const each = checked(PyObject_GetAttrString(checked(imported("tenon._autograd")).get(), "each_of_batch")).release();
    return checked(PyObject_CallFunctionObjArgs(each, node, tuple_of(given).get(), nullptr));
  }

  std::vector<TorchRef> apply(const NodeRun& run, std::span<void* const> given) override {
    const GradientNode& made = backward->node(node);
    if (released) throw std::runtime_error(twice_text());
    for (std::size_t k = 0; k < kept.size(); ++k)
      if (kept[k].version_now() != kept[k].version) {
        if (backward->keeps_by_itself()) with_python([&] { backward->refuse_written(text_of_write(k)); });
        throw std::runtime_error(text_of_write(k));
      }
    if (backward->reads_later()) with_python([&] { backward->require_as_at_call(); });
    std::vector<Tangent> tangents;
    for (std::size_t k = 0; k < given.size(); ++k) tangents.push_back(tangent_of(given[k], segment().tensors[made.results[k]]));
    const bool any = std::ranges::any_of(tangents, [](const Tangent& t) { return t.tensor != nullptr; });
    if (!any && !backward->gradients().has_functions) return std::vector<TorchRef>(run.edge_count());
    try {
      return run.records() ? gradients_with_history(run, tangents) : gradients(run, tangents);
    } catch (const Exception& failure) {
      throw std::runtime_error(failure.what());
    }
  }

 private:
  const CapturedGraph& segment() const { return backward->segment(); }
  bool is_scalar(std::uint32_t input) const { return segment().inputs[input].kind == TensorKind::scalar; }

  void* kept_data(std::size_t k) {
    const std::vector<std::uint32_t>& inputs = backward->node(node).part.kept_inputs;
    if (k < inputs.size() && is_scalar(inputs[k])) return scalars[k].bytes;
    if (k < inputs.size())
      if (void* now = kept[k].replacement(segment().inputs[inputs[k]].dtype)) return require_same(kept[k], now, segment().inputs[inputs[k]]);
    return kept[k].data();
  }

  /// Memory that a leaf was given since the call as other `.data`: where parameters are gathered for a while, it holds what the graph has read. Throws
  /// where it does not, or is of another layout: torch reads it in some of its nodes, and a graph may compute more of it again.
  static void* require_same(const KeptMemory& before, void* now, const TensorSpec& spec) {
    void* leaf = before.counts.get();
    const std::size_t rank = layout::rank(leaf);
    const bool fits = !spec.varies() && rank == spec.shape.size() && layout::dtype_device(leaf) == spec.dtype_device && std::ranges::equal(spec.shape, std::span(layout::sizes(leaf), rank)) &&
                      std::ranges::equal(spec.strides, std::span(layout::strides(leaf), rank)) && is_row_major(spec.shape, spec.strides);
    if (fits && (!before.data() || (spec.device.is_host() && std::memcmp(before.data(), now, byte_count(spec.dtype, spec.shape)) == 0))) return now;
    throw std::runtime_error(fmt::format("the data of a leaf variable, {}, was replaced by other data before its gradients were computed, which a compiled graph cannot follow", spec.describe()));
  }

  /// torch's words about a tensor that was written.
  std::string text_of_write(std::size_t k) const {
    const GradientNode& made = backward->node(node);
    const ir::Graph& graph = backward->gradients().forward;
    const std::size_t inputs = made.part.kept_inputs.size();
    const ir::ValueId value = k < inputs ? graph.inputs()[made.part.kept_inputs[k]] : graph.outputs()[made.part.kept_outputs[k - inputs]].value;
    std::string shape;
    for (const ir::Dim& d : graph.type(value).shape) shape += fmt::format("{}{}", shape.empty() ? "" : ", ", d.is_constant() ? d.constant() : d.evaluate(symbols));
    const char* hint = torch_library()->is_anomaly_mode_on() ? "Hint: the backtrace further above shows the operation that failed to compute its gradient. The variable in question was changed in "
                                              "there or anywhere later. Good luck!"
                                            : "Hint: enable anomaly detection to find the operation that failed to compute its gradient, with "
                                              "torch.autograd.set_detect_anomaly(True, check_nan=False).";
    return fmt::format("one of the variables needed for gradient computation has been modified by an inplace operation: [{} [{}]] is at version {}; expected version {} instead. {}",
                       tensor_type_name(graph.type(value).dtype), shape, kept[k].version_now(), kept[k].version, hint);
  }

  /// Copies those that the graph reads in another order.
  void fit(std::vector<Tangent>& tangents, std::span<const TangentLayout> layouts) const {
    for (std::size_t k = 0; k < tangents.size(); ++k)
      if (tangents[k].layout != layouts[k]) tangents[k].copy_in_order(segment().tensors[backward->node(node).results[k]].dtype);
  }

  std::vector<TorchRef> run_function(const GraphFunction& function, void** data) const {
    const std::size_t inputs = function.input_count();
    std::vector<TorchRef> made(function.captured().tensors.size());
    function.make_tensors(data + inputs, symbols, [&](std::size_t i, const TensorOutput& output, auto shape, auto strides, void*& memory) {
      made[i] = new_plain_tensor(*known_torch_library(), output.dtype, shape, strides, memory);
    });
    if (function.run(data, symbols)) return made;
    const TenonFailure* failure = tenon_last_error();
    throw std::runtime_error(failure && failure->text ? failure->text : "a gradient could not be computed");
  }

  std::vector<TorchRef> gradients(const NodeRun& run, std::vector<Tangent>& tangents) {
    BackwardRequest request;
    std::size_t edge = 0;
    for (const auto& gradient : backward->node(node).part.gradients) request.asked.push_back(gradient && run.asks(edge++));
    for (const Tangent& tangent : tangents) request.tangents.push_back(tangent.layout);
    const SegmentBackward::Function* function = backward->known(node, request);
    if (!function) {
      request = backward->usual(node, std::move(request));
      function = with_python([&] { return &backward->function(node, request); });
      fit(tangents, request.tangents);
    }
    SmallArray<void*, 24> data(function->function.input_count() + function->function.output_count() + 1);
    std::size_t next = 0;
    for (std::size_t k = 0; k < kept.size(); ++k) data[next++] = kept_data(k);
    for (std::size_t k = 0; k < tangents.size(); ++k) data[next++] = data_of_tangent(tangents[k], k);
    std::vector<TorchRef> made = run_function(function->function, data.data()), by_edge;
    for (std::size_t w = 0; w < function->gradients.size(); ++w) {
      if (!backward->node(node).part.gradients[w]) continue;
      const auto tensor = function->gradients[w];
      by_edge.push_back(tensor ? std::move(made[*tensor]) : TorchRef());
    }
    return by_edge;
  }

  void* data_of_tangent(const Tangent& tangent, std::size_t k) const {
    return tangent.tensor ? layout::data(tangent.read(), size_of(segment().tensors[backward->node(node).results[k]].dtype)) : nullptr;
  }

  std::vector<TorchRef> gradients_with_history(const NodeRun& run, std::vector<Tangent>& tangents);
};

/// The nodes of a run while they are made, each after what it hands gradients to.
template <class Sources>
class NewNodes {
 public:
  NewNodes(const std::shared_ptr<SegmentBackward>& backward, const Sources& sources, std::span<const std::int64_t> symbols)
      : backward_(backward), gradients_(backward->gradients()), sources_(sources), symbols_(symbols) {}

  void add_all() {
    for (std::size_t n = 0; n < gradients_.nodes.size(); ++n) add(n);
  }

 private:
  void add(std::size_t n) {
    const GradientNode& node = gradients_.nodes[n];
    const std::size_t count = node.results.size();
    SmallArray<void*, 8> results(count);
    for (std::size_t k = 0; k < count; ++k) results[k] = is_unseen(node.results[k]) ? placeholder(node.results[k]) : sources_.result(node.results[k]);
    const std::span<void* const> all(results.data(), count);
    const std::span<GradientMetadata> metadata = sources_.metadata(n);
    if (count == 1) return add_native_node(body(n), edges(node), all, metadata);
    // Each has a node of its own in front: who watches one of them sees nothing of the others.
    const TorchRef whole = native_node(body(n), edges(node), all, metadata);
    for (std::uint32_t k = 0; k < count; ++k) {
      if (is_unseen(node.results[k])) {
        unseen_.push_back({node.results[k], {whole, k}});
        continue;
      }
      std::vector<TorchEdge> edge;
      edge.push_back({whole, k});
      add_native_node(std::make_unique<HandingBody>(), std::move(edge), all.subspan(k, 1), metadata.empty() ? metadata : metadata.subspan(k, 1));
    }
  }

  std::unique_ptr<SegmentBody> body(std::size_t n) const {
    const GradientNode& node = gradients_.nodes[n];
    auto body = std::make_unique<SegmentBody>();
    body->backward = backward_;
    body->node = n;
    body->symbols.assign(symbols_.begin(), symbols_.end());
    body->kept.reserve(node.part.kept_inputs.size() + node.kept_tensors.size());
    for (std::uint32_t i : node.part.kept_inputs) {
      if (backward_->segment().inputs[i].kind != TensorKind::scalar) {
        body->kept.push_back(sources_.input(i));
        continue;
      }
      body->scalars.resize(node.part.kept_inputs.size());
      body->scalars[body->kept.size()] = sources_.scalar(i);
      body->kept.emplace_back();
    }
    for (std::uint32_t t : node.kept_tensors) body->kept.push_back(sources_.tensor(t));
    return body;
  }

  std::vector<TorchEdge> edges(const GradientNode& node) const {
    std::vector<TorchEdge> edges;
    edges.reserve(gradients_.wanted_count());
    for (std::size_t w = 0; w < gradients_.wanted_count(); ++w) {
      if (!node.part.gradients[w]) continue;
      if (gradients_.is_input(w)) edges.push_back(sources_.edge(gradients_.wanted[w]));
      else if (!gradients_.is_inner(w)) edges.push_back(sources_.outer_edge(w - gradients_.wanted.size()));
      else if (const std::uint32_t tensor = gradients_.inner_tensor(w); is_unseen(tensor)) edges.push_back(std::ranges::find(unseen_, tensor, &Unseen::tensor)->edge);
      else edges.push_back(sources_.inner_edge(tensor));
    }
    sources_.order(edges, node);
    return edges;
  }

  bool is_unseen(std::uint32_t tensor) const { return backward_->segment().tensors[tensor].kind == TensorOutput::Kind::unseen; }

  /// A tensor of its type and shape, all in one element.
  void* placeholder(std::uint32_t tensor) {
    const TensorOutput& output = backward_->segment().tensors[tensor];
    const std::size_t rank = output.shape.size();
    SmallArray<std::int64_t, 12> sizes(2 * rank);
    if (output.varying_shape.empty()) std::ranges::copy(output.shape, sizes.data());
    else evaluate_layout(output, symbols_, sizes.data());
    std::fill_n(sizes.data() + rank, rank, 0);
    void* data = nullptr;
    return placeholders_.emplace_back(new_plain_tensor(*known_torch_library(), output.dtype, {sizes.data(), rank}, {sizes.data() + rank, rank}, data)).get();
  }

  struct Unseen {
    std::uint32_t tensor;
    TorchEdge edge;
  };

  const std::shared_ptr<SegmentBackward>& backward_;
  const SegmentGradients& gradients_;
  const Sources& sources_;
  const std::span<const std::int64_t> symbols_;
  std::vector<Unseen> unseen_;
  std::vector<TorchRef> placeholders_;
};

template <class Sources>
void add_nodes_from(const std::shared_ptr<SegmentBackward>& backward, const Sources& sources, std::span<const std::int64_t> symbols) {
  NewNodes(backward, sources, symbols).add_all();
}

/// Of a call of the segment.
struct CallSources {
  const std::shared_ptr<SegmentBackward>& backward;
  const NodesOfRun& run;
  PyObject* const* const inputs = run.inputs;
  PyObject* const* const tensors = run.tensors;

  KeptMemory input(std::uint32_t i) const { return memory_of_input(layout::impl(inputs[i]), backward->segment().inputs[i].dtype); }
  ScalarMemory scalar(std::uint32_t i) const {
    ScalarMemory memory;
    const void* data = data_of(backward->segment().inputs[i], inputs[i], memory.bytes);
    if (data != memory.bytes) std::memcpy(memory.bytes, data, size_of(backward->segment().inputs[i].dtype));
    return memory;
  }
  KeptMemory tensor(std::uint32_t t) const { return memory_of(layout::impl(tensors[t]), backward->segment().tensors[t].dtype); }
  TorchEdge edge(std::uint32_t i) const { return edge_of(layout::impl(inputs[i])); }
  TorchEdge outer_edge(std::size_t) const { return {}; }  // a call has none
  TorchEdge inner_edge(std::uint32_t t) const {
    if (!tensors[t]) run.make_view(t);
    return edge_of(layout::impl(tensors[t]));
  }
  void* result(std::uint32_t t) const { return layout::impl(tensors[t]); }
  std::span<GradientMetadata> metadata(std::size_t node) const {
    const auto& results = backward->node(node).results;
    const bool varies = std::ranges::any_of(results, [&](std::uint32_t t) { return !backward->segment().tensors[t].varying_shape.empty(); });
    return varies ? std::span<GradientMetadata>() : backward->metadata(node);
  }

  /// Where the program looks on, inputs get their gradients one after the other, as torch comes by them.
  void order(std::vector<TorchEdge>& edges, const GradientNode& node) const {
    const std::vector<std::uint32_t>& wanted = backward->gradients().wanted;
    bool hooked = false;
    for (std::size_t w = 0, edge = 0; w < wanted.size(); ++w)
      if (node.part.gradients[w]) hooked = has_hooks(layout::impl(inputs[wanted[w]]), edges[edge++]) || hooked;
    if (!hooked) return;
    std::vector<void*> by_edge;
    for (std::size_t w = 0; w < wanted.size(); ++w)
      if (node.part.gradients[w]) by_edge.push_back(layout::impl(inputs[wanted[w]]));
    for (std::size_t first = node.order.size(); first-- > 0;) {
      const std::span rest = std::span(node.order).subspan(first);
      std::vector<TorchEdge> next;
      std::vector<void*> like;
      for (std::uint32_t at : rest) {
        next.push_back(std::move(edges[at]));
        like.push_back(by_edge[at]);
      }
      const TorchRef handing = native_node(std::make_unique<HandingBody>(), std::move(next), like);
      for (std::uint32_t k = 0; k < rest.size(); ++k) edges[rest[k]] = {handing, k};
    }
  }
};

/// The number of a run in a tensor that keeps the run.
TorchRef owner_of_run(const TorchRef& tensor) {
  std::int64_t number = 0;
  std::memcpy(&number, layout::data(tensor.get(), sizeof number), sizeof number);
  return TorchRef::borrow(layout::impl(KeptRuns::owner(checked(PyLong_FromLongLong(number)).get()).get()));
}

/// Of a run of the gradients of a node.
struct AgainSources {
  const SegmentBody& body;
  const NodeRun& run;
  const std::vector<Tangent>& tangents;
  const SegmentBackward::Again& again;
  const std::vector<TorchRef>& made;

  std::uint32_t inputs() const { return static_cast<std::uint32_t>(body.backward->gradients().forward.inputs().size()); }
  const GradientNode& node() const { return body.backward->node(body.node); }
  std::size_t place(std::uint32_t i) const {
    const std::vector<std::uint32_t>& kept = node().part.kept_inputs;
    const auto found = std::ranges::find(kept, i);
    if (found == kept.end()) throw std::runtime_error("a gradient of the gradient reads an input that was not kept");
    return static_cast<std::size_t>(found - kept.begin());
  }

  KeptMemory input(std::uint32_t i) const {
    if (i < inputs()) return body.kept[place(i)];
    return memory_of(tangents[i - inputs()].read(), again.function->captured().inputs[i].dtype);
  }
  ScalarMemory scalar(std::uint32_t i) const { return body.scalars[place(i)]; }
  KeptMemory tensor(std::uint32_t t) const {
    const TensorOutput& tensor = again.function->captured().tensors[t];
    if (tensor.kind == TensorOutput::Kind::given) return body.kept[node().part.kept_inputs.size() + (t - node().whole.captured->tensors.size())];
    return memory_of(made[t].get(), tensor.dtype);
  }
  TorchEdge edge(std::uint32_t i) const {
    if (i >= inputs()) return edge_of(tangents[i - inputs()].tensor);
    const std::vector<std::uint32_t>& wanted = body.backward->gradients().wanted;
    return edge_to(static_cast<std::size_t>(std::ranges::find(wanted, i) - wanted.begin()));
  }
  /// They are what the node has a gradient of behind the inputs, then its result.
  TorchEdge outer_edge(std::size_t outer) const {
    for (std::size_t w = body.backward->gradients().wanted.size(); w < node().part.gradients.size(); ++w)
      if (node().part.gradients[w] && outer-- == 0) return edge_to(w);
    return run.own_edge();
  }
  TorchEdge edge_to(std::size_t w) const {
    std::size_t edge = 0;
    for (std::size_t before = 0; before < w; ++before) edge += node().part.gradients[before].has_value();
    return run.edge(edge);
  }
  TorchEdge inner_edge(std::uint32_t t) const { return edge_of(made[t].get()); }
  void* result(std::uint32_t t) const { return made[t].get(); }
  std::span<GradientMetadata> metadata(std::size_t) const { return {}; }
  void order(std::vector<TorchEdge>&, const GradientNode&) const {}
};

/// Nodes of the gradients that torch does not differentiate, on the way to all that these were computed for, or beside others.
void add_refusing_nodes(const AgainSources& sources) {
  const std::vector<TensorOutput>& tensors = sources.again.function->captured().tensors;
  for (std::uint32_t t = 0; t < tensors.size(); ++t) {
    if (tensors[t].refusal.empty()) continue;
    void* const result = sources.result(t);
    if (tensors[t].refusal_beside) {
      TorchRef refusing = native_node(std::make_unique<RefusingBody>(tensors[t].refusal), {}, {&result, 1});
      add_native_node(std::make_unique<HandingBothBody>(), {edge_of(result), {std::move(refusing), 0}}, {&result, 1});
      continue;
    }
    std::vector<TorchEdge> edges(tensors[t].refusal_ends ? 0 : sources.run.edge_count());
    for (std::size_t e = 0; e < edges.size(); ++e) edges[e] = sources.run.edge(e);
    add_native_node(std::make_unique<RefusingBody>(tensors[t].refusal), std::move(edges), {&result, 1});
  }
}

std::vector<TorchRef> SegmentBody::gradients_with_history(const NodeRun& run, std::vector<Tangent>& tangents) {
  std::vector<TangentHistory> given;
  std::vector<TangentLayout> layouts;
  for (const Tangent& tangent : tangents) {
    given.push_back(!tangent.tensor ? TangentHistory::none : edge_of(tangent.tensor).node ? TangentHistory::tracked : TangentHistory::untracked);
    layouts.push_back(tangent.tensor ? TangentLayout::row_major : TangentLayout::none);
  }
  SegmentBackward::Again* again = backward->known_again(node, given);
  if (!again) again = with_python([&] { return &backward->again(node, given); });
  if (!again->function) return gradients(run, tangents);
  fit(tangents, layouts);
  const GraphFunction& function = *again->function;
  const GradientNode& made_node = backward->node(node);
  const std::vector<std::uint32_t>& kept_inputs = made_node.part.kept_inputs;
  SmallArray<void*, 24> data(function.input_count() + function.output_count() + 1);
  std::fill_n(data.data(), function.input_count(), nullptr);  // it reads what is kept alone
  const std::size_t inputs = backward->gradients().forward.inputs().size();
  for (std::size_t k = 0; k < kept_inputs.size(); ++k) data[kept_inputs[k]] = kept_data(k);
  for (std::size_t k = 0; k < tangents.size(); ++k) data[inputs + k] = data_of_tangent(tangents[k], k);
  for (std::size_t k = kept_inputs.size(); k < kept.size(); ++k) data[inputs + tangents.size() + k - kept_inputs.size()] = kept_data(k);
  std::optional<KeptRuns> kept_runs;
  if (again->runs.any) with_python([&] { kept_runs.emplace(again->runs); });
  std::vector<TorchRef> made = run_function(function, data.data());
  for (std::uint32_t t : again->runs.tensors) made[t] = with_python([&] { return owner_of_run(made[t]); });
  const AgainSources sources{*this, run, tangents, *again, made};
  add_nodes_from(again->backward, sources, symbols);
  add_refusing_nodes(sources);
  made.resize(made_node.whole.captured->tensors.size());  // behind the gradients is what is kept
  for (std::size_t e = 0; e < made.size(); ++e)
    if (!run.asks(e)) made[e] = TorchRef();
  return made;
}

}  // namespace

void add_native_nodes(const std::shared_ptr<SegmentBackward>& backward, const NodesOfRun& run) {
  add_nodes_from(backward, CallSources{backward, run}, run.symbols);
}

}  // namespace tenon::python
