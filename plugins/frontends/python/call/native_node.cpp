#include "python/call/native_node.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <utility>

#include "core/base/error.h"
#include "python/call/run_frame.h"
#include "python/compat/object_layout.h"
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

/// A tensor that a backward reads, by its memory and what counts the writes to it: the tensor itself may have a history that leads back to the node.
struct KeptMemory {
  TorchRef storage, counter;
  std::int64_t offset = 0;  // in bytes
  std::uint32_t version = 0;

  std::uint32_t version_now() const { return counter ? layout::field<std::atomic<std::uint32_t>>(counter.get(), 16).load() : 0; }
  void* data() const { return static_cast<char*>(layout::storage_data(storage.get())) + offset; }
};

KeptMemory memory_of(void* tensor, DType dtype) {
  KeptMemory kept{TorchRef::borrow(layout::storage(tensor)), TorchRef::borrow(layout::field<void*>(tensor, 40)),
                  layout::storage_offset(tensor) * static_cast<std::int64_t>(size_of(dtype)), 0};
  kept.version = kept.version_now();
  return kept;
}

const char* tensor_type_name(DType dtype) {
  switch (dtype) {
    case DType::b8: return "torch.BoolTensor";
    case DType::u8: return "torch.ByteTensor";
    case DType::i8: return "torch.CharTensor";
    case DType::i16: return "torch.ShortTensor";
    case DType::i32: return "torch.IntTensor";
    case DType::i64: return "torch.LongTensor";
    case DType::f16: return "torch.HalfTensor";
    case DType::bf16: return "torch.BFloat16Tensor";
    case DType::f32: return "torch.FloatTensor";
    case DType::f64: return "torch.DoubleTensor";
    case DType::c64: return "torch.ComplexFloatTensor";
    case DType::c128: return "torch.ComplexDoubleTensor";
  }
  return "torch.Tensor";
}

std::span<const std::int64_t> sizes_of(void* tensor) { return {layout::sizes(tensor), layout::rank(tensor)}; }

std::size_t count_of(std::span<const std::int64_t> sizes) {
  std::size_t count = 1;
  for (std::int64_t size : sizes) count *= static_cast<std::size_t>(size);
  return count;
}

/// Whether elements lie with those strides; strides of dimensions without a second element do not count.
bool lies_with(void* tensor, auto stride_of) {
  for (std::size_t d = layout::rank(tensor); d-- > 0;)
    if (const std::int64_t want = stride_of(d); layout::sizes(tensor)[d] > 1 && layout::strides(tensor)[d] != want) return false;
  return true;
}

bool is_row_major_tensor(void* tensor) {
  std::int64_t step = 1;
  return lies_with(tensor, [&](std::size_t d) { return std::exchange(step, step * layout::sizes(tensor)[d]); });
}

void copy_row_major(void* to, void* tensor, std::size_t item) {
  const std::size_t rank = layout::rank(tensor), count = count_of(sizes_of(tensor));
  const auto* from = static_cast<const char*>(layout::data(tensor, item));
  auto* next = static_cast<char*>(to);
  if (count == 0) return;
  std::vector<std::int64_t> position(rank, 0);
  const std::int64_t *sizes = layout::sizes(tensor), *strides = layout::strides(tensor);
  const std::size_t row = rank ? static_cast<std::size_t>(sizes[rank - 1]) : 1;
  const std::int64_t step = rank ? strides[rank - 1] * static_cast<std::int64_t>(item) : 0;
  for (std::size_t done = 0; done < count; done += row) {
    std::int64_t offset = 0;
    for (std::size_t d = 0; d + 1 < rank; ++d) offset += position[d] * strides[d];
    const char* element = from + offset * static_cast<std::int64_t>(item);
    if (step == static_cast<std::int64_t>(item)) std::memcpy(next, element, row * item);
    else
      for (std::size_t i = 0; i < row; ++i) std::memcpy(next + i * item, element + static_cast<std::int64_t>(i) * step, item);
    next += row * item;
    for (std::size_t d = rank - 1; rank > 1 && d-- > 0;) {
      if (++position[d] < sizes[d]) break;
      position[d] = 0;
    }
  }
}

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

/// A gradient that torch gives, as a backward reads it.
struct Tangent {
  TangentLayout layout = TangentLayout::none;
  void* tensor = nullptr;  // null where there is none
  TorchRef copy;           // in row-major order, where it is needed
  void* read() const { return copy ? copy.get() : tensor; }
};

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
    kept.clear();
    released = true;
  }

  Ref apply_to_others(PyObject* node, const std::vector<Ref>& given) override {
    static PyObject* const each = checked(PyObject_GetAttrString(checked(imported("tenon._autograd")).get(), "each_of_batch")).release();
    return checked(PyObject_CallFunctionObjArgs(each, node, tuple_of(given).get(), nullptr));
  }

  std::vector<TorchRef> apply(const NodeRun& run, std::span<void* const> given) override {
    const GradientNode& made = backward->node(node);
    if (released && made.part.kept_inputs.size() + made.part.kept_outputs.size() > 0) throw std::runtime_error(twice_text());
    for (std::size_t k = 0; k < kept.size(); ++k)
      if (kept[k].version_now() != kept[k].version) throw std::runtime_error(text_of_write(k));
    std::vector<Tangent> tangents;
    for (std::size_t k = 0; k < given.size(); ++k) tangents.push_back(tangent(made.results[k], given[k]));
    const bool any = std::ranges::any_of(tangents, [](const Tangent& t) { return t.tensor != nullptr; });
    if (!any) return std::vector<TorchRef>(run.edge_count());
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
    return k < inputs.size() && is_scalar(inputs[k]) ? scalars[k].bytes : kept[k].data();
  }

  /// torch's words about a tensor that was written.
  std::string text_of_write(std::size_t k) const {
    const GradientNode& made = backward->node(node);
    const ir::Graph& graph = backward->gradients().forward;
    const std::size_t inputs = made.part.kept_inputs.size();
    const ir::ValueId value = k < inputs ? graph.inputs()[made.part.kept_inputs[k]] : graph.outputs()[made.part.kept_outputs[k - inputs]].value;
    std::string shape;
    for (const ir::Dim& d : graph.type(value).shape) shape += fmt::format("{}{}", shape.empty() ? "" : ", ", d.is_constant() ? d.constant() : d.evaluate(symbols));
    const char* hint = is_anomaly_mode_on() ? "Hint: the backtrace further above shows the operation that failed to compute its gradient. The variable in question was changed in "
                                              "there or anywhere later. Good luck!"
                                            : "Hint: enable anomaly detection to find the operation that failed to compute its gradient, with "
                                              "torch.autograd.set_detect_anomaly(True, check_nan=False).";
    return fmt::format("one of the variables needed for gradient computation has been modified by an inplace operation: [{} [{}]] is at version {}; expected version {} instead. {}",
                       tensor_type_name(graph.type(value).dtype), shape, kept[k].version_now(), kept[k].version, hint);
  }

  Tangent tangent(std::uint32_t result, void* tensor) const {
    Tangent made{.layout = TangentLayout::none, .tensor = tensor, .copy = {}};
    if (!tensor) return made;
    const TensorOutput& output = segment().tensors[result];
    if (is_row_major_tensor(tensor)) made.layout = TangentLayout::row_major;
    else if (lies_with(tensor, [](std::size_t) { return 0; })) made.layout = TangentLayout::one_element;
    else if (output.varying_shape.empty() && lies_with(tensor, [&](std::size_t d) { return output.strides[d]; })) made.layout = TangentLayout::as_result;
    else copy(made, output.dtype);
    return made;
  }

  static void copy(Tangent& tangent, DType dtype) {
    std::vector<std::int64_t> strides(layout::rank(tangent.tensor));
    std::int64_t step = 1;
    for (std::size_t d = strides.size(); d-- > 0;) strides[d] = std::exchange(step, step * std::max<std::int64_t>(layout::sizes(tangent.tensor)[d], 1));
    void* data = nullptr;
    tangent.copy = new_plain_tensor(*known_torch_library(), dtype, sizes_of(tangent.tensor), strides, data);
    copy_row_major(data, tangent.tensor, size_of(dtype));
    tangent.layout = TangentLayout::row_major;
    ++node_counts().copied_gradients;
  }

  /// Copies those that the graph reads in another order.
  void fit(std::vector<Tangent>& tangents, std::span<const TangentLayout> layouts) const {
    for (std::size_t k = 0; k < tangents.size(); ++k)
      if (tangents[k].layout != layouts[k]) copy(tangents[k], segment().tensors[backward->node(node).results[k]].dtype);
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

template <class Sources>
void add_nodes_from(const std::shared_ptr<SegmentBackward>& backward, const Sources& sources, std::span<const std::int64_t> symbols) {
  const SegmentGradients& gradients = backward->gradients();
  for (std::size_t n = 0; n < gradients.nodes.size(); ++n) {
    const GradientNode& made = gradients.nodes[n];
    auto body = std::make_unique<SegmentBody>();
    body->backward = backward;
    body->node = n;
    body->symbols.assign(symbols.begin(), symbols.end());
    body->kept.reserve(made.part.kept_inputs.size() + made.kept_tensors.size());
    for (std::uint32_t i : made.part.kept_inputs) {
      if (backward->segment().inputs[i].kind != TensorKind::scalar) {
        body->kept.push_back(sources.input(i));
        continue;
      }
      body->scalars.resize(made.part.kept_inputs.size());
      body->scalars[body->kept.size()] = sources.scalar(i);
      body->kept.emplace_back();
    }
    for (std::uint32_t t : made.kept_tensors) body->kept.push_back(sources.tensor(t));
    std::vector<TorchEdge> edges;
    edges.reserve(gradients.wanted.size());
    for (std::size_t w = 0; w < gradients.wanted.size(); ++w)
      if (made.part.gradients[w]) edges.push_back(sources.edge(gradients.wanted[w]));
    sources.order(edges, made);
    SmallArray<void*, 8> results(made.results.size());
    for (std::size_t k = 0; k < results.size(); ++k) results[k] = sources.result(made.results[k]);
    add_native_node(std::move(body), std::move(edges), {results.data(), results.size()}, sources.metadata(n));
  }
}

/// Hands gradients on as they are.
class HandingBody final : public NodeBody {
 public:
  const char* name() const override { return "HandOnBackward"; }
  std::vector<TorchRef> apply(const NodeRun&, std::span<void* const> given) override {
    std::vector<TorchRef> handed;
    for (void* tensor : given) handed.push_back(TorchRef::borrow(tensor));
    return handed;
  }
  Ref apply_to_others(PyObject*, const std::vector<Ref>& given) override { return tuple_of(given); }
};

/// Of a call of the segment.
struct CallSources {
  const std::shared_ptr<SegmentBackward>& backward;
  PyObject* const* inputs;
  PyObject* const* tensors;

  KeptMemory input(std::uint32_t i) const { return memory_of(layout::impl(inputs[i]), backward->segment().inputs[i].dtype); }
  ScalarMemory scalar(std::uint32_t i) const {
    ScalarMemory memory;
    const void* data = data_of(backward->segment().inputs[i], inputs[i], memory.bytes);
    if (data != memory.bytes) std::memcpy(memory.bytes, data, size_of(backward->segment().inputs[i].dtype));
    return memory;
  }
  KeptMemory tensor(std::uint32_t t) const { return memory_of(layout::impl(tensors[t]), backward->segment().tensors[t].dtype); }
  TorchEdge edge(std::uint32_t i) const { return edge_of(layout::impl(inputs[i])); }
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
    for (std::size_t first = edges.size(); first-- > 0;) {
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
    return memory_of(tangents[i - inputs()].read(), again.function.captured().inputs[i].dtype);
  }
  ScalarMemory scalar(std::uint32_t i) const { return body.scalars[place(i)]; }
  KeptMemory tensor(std::uint32_t t) const {
    const TensorOutput& tensor = again.function.captured().tensors[t];
    if (tensor.kind == TensorOutput::Kind::given) return body.kept[node().part.kept_inputs.size() + (t - node().whole.captured->tensors.size())];
    return memory_of(made[t].get(), tensor.dtype);
  }
  TorchEdge edge(std::uint32_t i) const {
    if (i >= inputs()) return edge_of(tangents[i - inputs()].tensor);
    std::size_t edge = 0;
    for (std::size_t w = 0; body.backward->gradients().wanted[w] != i; ++w) edge += node().part.gradients[w].has_value();
    return run.edge(edge);
  }
  void* result(std::uint32_t t) const { return made[t].get(); }
  std::span<GradientMetadata> metadata(std::size_t) const { return {}; }
  void order(std::vector<TorchEdge>&, const GradientNode&) const {}
};

std::vector<TorchRef> SegmentBody::gradients_with_history(const NodeRun& run, std::vector<Tangent>& tangents) {
  std::vector<bool> given;
  for (Tangent& tangent : tangents) given.push_back(tangent.tensor != nullptr);
  fit(tangents, [&] {
    std::vector<TangentLayout> plain;
    for (bool there : given) plain.push_back(there ? TangentLayout::row_major : TangentLayout::none);
    return plain;
  }());
  SegmentBackward::Again* again = backward->known_again(node, given);
  if (!again) again = with_python([&] { return &backward->again(node, given); });
  const GraphFunction& function = again->function;
  const GradientNode& made_node = backward->node(node);
  const std::vector<std::uint32_t>& kept_inputs = made_node.part.kept_inputs;
  SmallArray<void*, 24> data(function.input_count() + function.output_count() + 1);
  std::fill_n(data.data(), function.input_count(), nullptr);  // it reads what is kept alone
  const std::size_t inputs = backward->gradients().forward.inputs().size();
  for (std::size_t k = 0; k < kept_inputs.size(); ++k) data[kept_inputs[k]] = kept_data(k);
  for (std::size_t k = 0; k < tangents.size(); ++k) data[inputs + k] = data_of_tangent(tangents[k], k);
  for (std::size_t k = kept_inputs.size(); k < kept.size(); ++k) data[inputs + tangents.size() + k - kept_inputs.size()] = kept_data(k);
  std::vector<TorchRef> made = run_function(function, data.data());
  add_nodes_from(again->backward, AgainSources{*this, run, tangents, *again, made}, symbols);
  made.resize(made_node.whole.captured->tensors.size());  // behind the gradients is what is kept
  for (std::size_t e = 0; e < made.size(); ++e)
    if (!run.asks(e)) made[e] = TorchRef();
  return made;
}

}  // namespace

void add_native_nodes(const std::shared_ptr<SegmentBackward>& backward, PyObject* const* inputs, PyObject* const* tensors, std::span<const std::int64_t> symbols) {
  add_nodes_from(backward, CallSources{backward, inputs, tensors}, symbols);
}

}  // namespace tenon::python
