#include "core/ops/reference/reference.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "core/base/regular_file.h"
#include "core/memory/row_major.h"
#include "core/ops/build/expand.h"
#include "core/ops/catalog.h"
#include "core/ops/infer.h"
#include "core/ops/reference/loops.h"

namespace tenon::ops {
namespace {

DType stored_dtype(DType dtype, Precision precision) {
  if (precision != Precision::judge) return dtype;
  return is_float(dtype) ? DType::f64 : is_complex(dtype) ? DType::c128 : dtype;
}

void run_kernel(const Op& op, const OpQuery& query, const NodeRun& run) {
  KernelCall call{run.inputs, run.outputs, query, run.symbols, run.allocate};
  op.kernel(call);
}

/// The values of a graph while it runs.
class Evaluation {
 public:
  Evaluation(const ir::Graph& graph, Precision precision, std::span<const std::int64_t> symbols)
      : graph_(graph),
        precision_(precision),
        symbols_(graph.symbols().size(), kUnbound),
        owned_(graph.value_capacity()),
        views_(graph.value_capacity()) {
    for (std::size_t s = 0; s < std::min(symbols.size(), symbols_.size()); ++s)
      if (symbols[s] >= 0) symbols_[s] = symbols[s];  // a backend is given -1 for a size that is not known yet
  }

  void bind_input(ir::ValueId id, const TensorView& view) {
    bind_shape(graph_.type(id), view.shape);
    views_[id.value] = view;
  }

  void check_symbols() const {
    for (ir::ValueId id : graph_.inputs()) {
      const ir::Type& type = graph_.type(id);
      for (std::size_t d = 0; d < type.rank(); ++d)
        TENON_USER_CHECK(type.shape[d].evaluate(symbols_) == views_[id.value].shape[d], "input {} has size {} in dimension {}, not {}",
                         graph_.value(id).name, views_[id.value].shape[d], d, infer::text(graph_, type.shape[d]));
    }
  }

  void run(ir::NodeId id) {
    const ir::Node& node = graph_.node(id);
    std::vector<TensorView> inputs, outputs;
    for (ir::ValueId operand : node.operands) inputs.push_back(views_[operand.value]);
    for (ir::ValueId result : node.results) outputs.push_back(allocate(result));
    NodeRun run{.inputs = inputs, .outputs = outputs, .symbols = symbols_, .allocate = {}, .precision = precision_};
    run.allocate = [&](std::size_t k, std::vector<std::int64_t> shape) -> TensorView& {
      const ir::ValueId result = node.results[k];
      bind_shape(graph_.type(result), shape);
      return outputs[k] = own(result, std::move(shape));
    };
    run_node(graph_, id, run);
  }

  HostTensor take(ir::ValueId id) {
    const TensorView& view = views_[id.value];
    HostTensor copy(stored_dtype(view.dtype, precision_), view.shape);
    TensorView target = copy.view();
    reference::copy_tensor(view, target);
    return copy;
  }

 private:
  static constexpr std::int64_t kUnbound = INT64_MIN;

  void bind_shape(const ir::Type& type, std::span<const std::int64_t> shape) {
    TENON_USER_CHECK(type.rank() == shape.size(), "a tensor of {} dimensions for a value of {}", shape.size(), type.rank());
    for (std::size_t d = 0; d < shape.size(); ++d) {
      const SymbolId s = type.shape[d].as_symbol();
      if (!s) continue;
      if (symbols_[s.value] == kUnbound) symbols_[s.value] = shape[d];
      const ir::SymbolInfo& info = graph_.symbols()[s.value];
      TENON_USER_CHECK(symbols_[s.value] == shape[d], "the size {} is {} and {}", info.name, symbols_[s.value], shape[d]);
      TENON_USER_CHECK(shape[d] >= info.min && shape[d] <= info.max, "the graph holds for a size {} of {} to {}, not for {}", info.name, info.min, info.max, shape[d]);
    }
  }

  bool is_bound(const ir::Type& type) const {
    bool bound = true;
    for (const ir::Dim& d : type.shape) d.for_each_symbol([&](SymbolId s) { bound &= symbols_[s.value] != kUnbound; });
    return bound;
  }

  TensorView own(ir::ValueId id, std::vector<std::int64_t> shape) {
    owned_[id.value] = HostTensor(stored_dtype(graph_.type(id).dtype, precision_), std::move(shape));
    return views_[id.value] = owned_[id.value].view();
  }

  TensorView allocate(ir::ValueId id) {
    const ir::Type& type = graph_.type(id);
    if (!type.is_tensor() || !is_bound(type)) return {};
    std::vector<std::int64_t> shape;
    for (const ir::Dim& d : type.shape) shape.push_back(d.evaluate(symbols_));
    return own(id, std::move(shape));
  }

  const ir::Graph& graph_;
  Precision precision_;
  std::vector<std::int64_t> symbols_;
  std::vector<HostTensor> owned_;
  std::vector<TensorView> views_;
};

/// Runs the decomposition of a node as a graph of its own.
void run_decomposed(const ir::Graph& graph, ir::NodeId node, const NodeRun& run) {
  const ir::Graph simpler = decomposition(graph, node);
  std::vector<TensorView> inputs;
  for (std::size_t i = 0; i < run.inputs.size(); ++i)
    if (graph.value(graph.node(node).operands[i]).kind != ir::ValueKind::literal) inputs.push_back(run.inputs[i]);
  auto results = evaluate(simpler, inputs, run.precision, run.symbols);
  for (std::size_t k = 0; k < results.size(); ++k) {
    if (!run.outputs[k].data && results[k].element_count() != 0) run.allocate(k, results[k].shape);
    reference::copy_tensor(results[k].view(), run.outputs[k]);
  }
}

}  // namespace

HostTensor::HostTensor(DType dtype, std::vector<std::int64_t> sizes) : dtype(dtype), shape(std::move(sizes)) {
  std::int64_t counted = static_cast<std::int64_t>(size_of(dtype));
  bool countable = true;
  for (std::int64_t size : shape) {
    TENON_USER_CHECK(size >= 0, "a tensor with a dimension of {}", size);
    countable = countable && (size == 0 || !__builtin_mul_overflow(counted, size, &counted));
  }
  if (!countable || static_cast<std::uint64_t>(counted) > memory_of_machine()) throw Exception(Code::out_of_memory, "a tensor of that size is larger than the memory of this machine");
  const std::size_t bytes = (byte_count() + 63) / 64 * 64 + 64;
  void* memory = std::aligned_alloc(64, bytes);
  if (!memory) throw Exception(error(Code::out_of_memory, "no memory for a tensor of {} bytes", bytes));
  std::fill_n(static_cast<std::byte*>(memory), bytes, std::byte{0});
  data_.reset(memory);
}

void HostTensor::Release::operator()(void* p) const { std::free(p); }

std::int64_t HostTensor::element_count() const { return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>()); }

TensorView HostTensor::view() const { return {data_.get(), dtype, shape, row_major_strides(shape)}; }

void run_node(const ir::Graph& graph, ir::NodeId id, const NodeRun& run) {
  const ir::Node& node = graph.node(id);
  const Op* op = find_op(node.op);
  if (!op) throw Exception(error(Code::unsupported, "the reference does not know the op '{}'", node.op));
  const OpQuery query(graph, node.operands, node.attributes);
  if (op->kernel) return run_kernel(*op, query, run);
  if (op->scatter) return reference::run_scatter(op->scatter(query), run);
  if (const auto loop = loop_of(graph, id)) return reference::run_loop(*loop, run);
  if (op->decompose) return run_decomposed(graph, id, run);
  throw Exception(error(Code::unsupported, "the reference does not run '{}'", node.op));
}

std::vector<HostTensor> evaluate(const ir::Graph& graph, std::span<const TensorView> inputs, Precision precision,
                                 std::span<const std::int64_t> symbols) {
  TENON_USER_CHECK(inputs.size() == graph.inputs().size(), "the graph takes {} inputs, {} given", graph.inputs().size(), inputs.size());
  Evaluation evaluation(graph, precision, symbols);
  for (std::size_t i = 0; i < inputs.size(); ++i) evaluation.bind_input(graph.inputs()[i], inputs[i]);
  evaluation.check_symbols();
  for (ir::NodeId id : graph.nodes()) evaluation.run(id);
  std::vector<HostTensor> results;
  for (const ir::Output& output : graph.outputs()) results.push_back(evaluation.take(output.value));
  return results;
}

}  // namespace tenon::ops
