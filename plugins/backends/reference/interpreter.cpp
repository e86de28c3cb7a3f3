#include "interpreter.h"

#include <cstring>
#include <unordered_map>

#include "core/ops/reference/reference.h"

namespace tenon::reference {
namespace {

std::vector<std::int64_t> evaluated(std::span<const ir::Dim> dims, std::span<const std::int64_t> symbols) {
  std::vector<std::int64_t> values;
  for (const ir::Dim& dim : dims) values.push_back(dim.evaluate(symbols));
  return values;
}

std::int64_t element_count(std::span<const std::int64_t> shape) {
  std::int64_t count = 1;
  for (std::int64_t size : shape) count *= size;
  return count;
}

}  // namespace

Interpreter::Interpreter(HostServices host, ir::Graph graph)
    : host_(host), profiling_(host), graph_(std::move(graph)), dead_after_(graph_.nodes().size()), outputs_of_(graph_.value_capacity()) {
  for (std::uint32_t k = 0; k < graph_.outputs().size(); ++k) outputs_of_[graph_.outputs()[k].value.value].push_back(k);
  std::unordered_map<ValueId, std::size_t> last_use;
  for (std::size_t i = 0; i < graph_.nodes().size(); ++i) {
    const ir::Node& node = graph_.node(graph_.nodes()[i]);
    for (ValueId r : node.results) last_use[r] = i;
    for (ValueId v : node.operands)
      if (graph_.value(v).kind == ir::ValueKind::result) last_use[v] = i;
  }
  for (const auto& [value, position] : last_use)
    if (outputs_of_[value.value].empty()) dead_after_[position].push_back(value);
}

/// One run.
class Execution {
 public:
  Execution(const Interpreter& plan, const TenonExecuteArgs& args)
      : plan_(plan), graph_(plan.graph_), args_(args), symbols_(args.symbols, args.symbols + graph_.symbols().size()), views_(graph_.value_capacity()),
        owned_(graph_.value_capacity(), nullptr) {}
  ~Execution() {
    for (void* memory : owned_)
      if (memory) plan_.host_.deallocate(memory);
  }

  void run() {
    for (std::size_t i = 0; i < graph_.inputs().size(); ++i) {
      const ValueId v = graph_.inputs()[i];
      if (graph_.type(v).is_tensor()) views_[v.value] = view_of(v, const_cast<void*>(args_.inputs[i]));
    }
    for (std::size_t position = 0; position < graph_.nodes().size(); ++position) {
      run_node(graph_.nodes()[position]);
      for (ValueId dead : plan_.dead_after_[position]) free_value(dead);
    }
    copy_outputs();
  }

 private:
  ops::TensorView view_of(ValueId v, void* data) const {
    const ir::Type& type = graph_.type(v);
    return {data, type.dtype, evaluated(type.shape, symbols_), evaluated(type.resolved_strides(), symbols_)};
  }

  /// Memory for a value of the given shape: the first output that it is, else of our own.
  void* memory_for(ValueId v, const std::vector<std::int64_t>& shape) {
    const std::vector<std::uint32_t>& outputs = plan_.outputs_of_[v.value];
    if (!outputs.empty()) {
      if (void* given = args_.outputs[outputs.front()]) return given;
      void* asked = args_.call->allocate_output(args_.call->self, outputs.front(), shape.data(), shape.size());
      if (!asked) throw Failure(TENON_OUT_OF_MEMORY, "the host gives no memory for output " + std::to_string(outputs.front()));
      return asked;
    }
    const std::size_t bytes = static_cast<std::size_t>(element_count(shape)) * size_of(graph_.type(v).dtype);
    return owned_[v.value] = plan_.host_.allocate(std::max<std::size_t>(bytes, 1));
  }

  bool is_sized(const ir::Type& type) const {
    bool known = true;
    for (const ir::Dim& dim : type.shape)
      if (!dim.is_constant()) dim.for_each_symbol([&](SymbolId s) { known = known && symbols_[s.value] >= 0; });
    return known;
  }

  void run_node(NodeId n) {
    const ir::Node& node = graph_.node(n);
    if (const ir::Attribute* index = constant_index(node)) {
      const ir::Constant& constant = graph_.constants()[static_cast<std::size_t>(std::get<ir::Dim>(*index).constant())];
      views_[node.results[0].value] = view_of(node.results[0], const_cast<void*>(constant.data));
      return;
    }
    Range range;
    if (plan_.profiling_.takes_ranges()) [[unlikely]] range.begin(plan_.profiling_, std::string(node.op), place_of(node));
    std::vector<ops::TensorView> inputs, outputs;
    for (ValueId v : node.operands) inputs.push_back(views_[v.value]);
    for (ValueId r : node.results) outputs.push_back(prepare(r));
    ops::NodeRun run{inputs, outputs, symbols_, {}, ops::Precision::native};
    run.allocate = [&](std::size_t i, std::vector<std::int64_t> shape) -> ops::TensorView& {
      bind(node.results[i], shape);
      outputs[i] = view_of(node.results[i], memory_for(node.results[i], shape));
      return outputs[i];
    };
    try {
      ops::run_node(graph_, n, run);
    } catch (const Exception& e) {
      throw Failure(static_cast<TenonCode>(e.code()), words(node, e.what()), n.value);
    }
    for (std::size_t i = 0; i < outputs.size(); ++i) views_[node.results[i].value] = outputs[i];
  }

  ops::TensorView prepare(ValueId r) {
    const ir::Type& type = graph_.type(r);
    if (!type.is_tensor()) return {};
    if (!is_sized(type)) return {nullptr, type.dtype, {}, {}};
    const std::vector<std::int64_t> shape = evaluated(type.shape, symbols_);
    return view_of(r, memory_for(r, shape));
  }

  /// A size that only this run knows gives its symbol a value.
  void bind(ValueId v, const std::vector<std::int64_t>& shape) {
    const ir::Type& type = graph_.type(v);
    for (std::size_t d = 0; d < shape.size(); ++d)
      if (const SymbolId s = type.shape[d].as_symbol(); s && symbols_[s.value] < 0) symbols_[s.value] = shape[d];
  }

  static const ir::Attribute* constant_index(const ir::Node& node) { return node.op == "constant" ? node.attribute("index") : nullptr; }

  static std::string words(const ir::Node& node, const std::string& text) {
    return node.location->line == 0 ? text : place_of(node) + ": " + text;
  }
  /// "file:line", or nothing.
  static std::string place_of(const ir::Node& node) { return node.location->line == 0 ? std::string() : node.location->file + ":" + std::to_string(node.location->line); }

  void free_value(ValueId v) {
    if (void*& memory = owned_[v.value]) {
      plan_.host_.deallocate(memory);
      memory = nullptr;
    }
  }

  /// Outputs that are an input, a constant, or a value that an earlier output has already.
  void copy_outputs() {
    for (std::uint32_t k = 0; k < graph_.outputs().size(); ++k) {
      const ValueId v = graph_.outputs()[k].value;
      const ops::TensorView& view = views_[v.value];
      if (!graph_.type(v).is_tensor() || args_.outputs[k] == view.data || !args_.outputs[k]) continue;
      if (plan_.outputs_of_[v.value].front() == k && owned_[v.value] == nullptr && graph_.value(v).kind == ir::ValueKind::result && !constant_index(graph_.node(graph_.value(v).node)))
        continue;
      std::memcpy(args_.outputs[k], view.data, static_cast<std::size_t>(element_count(view.shape)) * size_of(view.dtype));
    }
  }

  const Interpreter& plan_;
  const ir::Graph& graph_;
  const TenonExecuteArgs& args_;
  std::vector<std::int64_t> symbols_;
  std::vector<ops::TensorView> views_;  // by ValueId
  std::vector<void*> owned_;            // by ValueId
};

void Interpreter::execute(const TenonExecuteArgs& args) { Execution(*this, args).run(); }

}  // namespace tenon::reference
