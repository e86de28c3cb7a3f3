#include "python/recording/graph/recorded_trace.h"

#include <span>
#include <utility>

#include "python/library/torch_library.h"
#include "python/objects/imported.h"
#include "python/recording/graph/source_text.h"

namespace tenon::python {
namespace {

/// Names the results of the nodes of a call after it: "sin", "sin_1".
void name_results(ir::Graph& graph, std::size_t first, std::string_view function) {
  std::string name(function.substr(function.rfind('.') + 1));
  while (!name.empty() && name.back() == '_') name.pop_back();
  while (!name.empty() && name.front() == '_') name.erase(0, 1);
  if (name.empty() || graph.nodes().size() == first) return;
  const ir::Node& last = graph.node(graph.nodes().back());
  if (last.results.size() == 1 && last.op != name) graph.set_name(last.results.front(), name);  // named after its op it is already
}

}  // namespace

Ref copying_function(TensorKind kind) {
  const bool torch = kind == TensorKind::torch;
  Ref module = torch ? torch_library()->module : checked(imported("numpy"));
  return checked(PyObject_GetAttrString(module.get(), torch ? "clone" : "copy"));
}

Ref function_that_keeps_strides() {
  Ref module = checked(imported("tenon._copies"));
  return checked(PyObject_GetAttrString(module.get(), "copy_with_strides"));
}

void RecordedTrace::add(TracedCall call, std::string op_name, std::size_t first_node) {
  trace_.calls.push_back(std::move(call));
  op_names_.push_back(std::move(op_name));
  places_.push_back({Ref::borrow(reinterpret_cast<PyObject*>(position_.code)), position_.byte_offset, first_node, graph_.nodes().size(), trace_.calls.size() - 1});
}

void RecordedTrace::add(PyObject* callable, const ForeignFunction& function, PyObject* args, PyObject* kwargs, const Ref& result, std::size_t first_node) {
  TracedCall call;
  call.callable = Ref::borrow(callable);
  if (const ErrorHandling& handling = error_handlings_.now(); handling.any() && function.flavour == ops::Flavour::numpy) {
    Ref module = checked(imported("tenon._error_handling"));
    call.callable = checked(PyObject_CallMethod(module.get(), "Within", "OO", callable, handling.modes().get()));
  }
  call.args = Ref::borrow(args);
  call.kwargs = Ref::borrow(kwargs);
  call.result = result;
  add(std::move(call), function.name, first_node);
  name_results(graph_, first_node, function.name);
  known_.note(callable, function, args, kwargs, result.get());
}

void RecordedTrace::add_constant(TensorKind kind, PyObject* array, const Ref& stand_in) {
  TracedCall call;
  call.callable = copying_function(kind);
  call.args = checked(PyTuple_Pack(1, array));
  call.result = stand_in;
  trace_.calls.push_back(std::move(call));
  op_names_.push_back(kind == TensorKind::torch ? "torch.clone" : "numpy.copy");
}

void RecordedTrace::add_number(const char* module, const char* function, const Ref& args, const Ref& number, bool integral) {
  Ref& callable = functions_[{module, function}];
  if (!callable) callable = checked(PyObject_GetAttrString(checked(imported(module)).get(), function));
  TracedCall call;
  call.callable = callable;
  call.args = args;
  call.result = number;
  call.gives_number = true;
  trace_.types[number.get()] = integral ? "int" : "float";
  add(std::move(call), std::string(module) + "." + function, graph_.nodes().size());
}

void RecordedTrace::add_choice(TracedCall call, std::size_t first_node) { add(std::move(call), "tenon.cond", first_node); }

std::shared_ptr<BranchTrace> RecordedTrace::cut(const Mark& since) {
  resolve_places(since.place);
  places_.resize(since.place);
  auto branch = std::make_shared<BranchTrace>();
  const auto first = static_cast<std::ptrdiff_t>(since.call);
  branch->trace.calls.assign(std::make_move_iterator(trace_.calls.begin() + first), std::make_move_iterator(trace_.calls.end()));
  branch->op_names.assign(op_names_.begin() + first, op_names_.end());
  trace_.calls.resize(since.call);
  op_names_.resize(since.call);
  return branch;
}

void RecordedTrace::resolve_places(std::size_t first) {
  struct Known {
    ir::SharedLocation location;
    std::string variable;
  };
  std::map<std::pair<PyObject*, int>, Known> known;  // a loop is at each of its instructions many times
  for (const Place& place : std::span(places_).subspan(first)) {
    if (!place.code) continue;
    const auto [found, is_new] = known.try_emplace({place.code.get(), place.byte_offset});
    auto* code = reinterpret_cast<PyCodeObject*>(place.code.get());
    if (is_new) found->second = {source_location(code, place.byte_offset), variable_after(code, place.byte_offset)};
    const auto& [location, variable] = found->second;
    for (std::size_t i = place.first_node; i < place.last_node; ++i) graph_.mutable_node(graph_.nodes()[i]).location = location;
    trace_.calls[place.call].location = location;
    trace_.calls[place.call].variable = variable;
  }
}

}  // namespace tenon::python
