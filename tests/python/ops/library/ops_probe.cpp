// Runs one foreign call through the catalogue and the reference, for tests: JSON in, JSON and bytes out.
#include <nlohmann/json.hpp>

#include <limits>

#include "core/ops/build/expand.h"
#include "core/ops/catalog.h"
#include "core/ops/foreign/foreign_call.h"
#include "core/ops/reference/reference.h"

using namespace tenon;
using namespace tenon::ops;
using nlohmann::json;

namespace {

struct Run {
  std::string text;
  std::vector<HostTensor> results;
};

struct Request {
  ir::Graph graph;
  std::vector<TensorView> views;
  std::vector<ir::ValueId> inputs;
};

ForeignArgument argument(const json& j, const Request& request) {
  if (j.is_null()) return {};
  if (j.is_boolean()) return {j.get<bool>()};
  if (j.is_number_integer()) return {ir::Dim(j.get<std::int64_t>())};
  if (j.is_number_float()) return {j.get<double>()};
  if (j.is_string()) return {j.get<std::string>()};
  if (j.is_array()) {
    ForeignList list;
    for (const json& e : j) list.push_back(argument(e, request));
    return {std::move(list)};
  }
  if (j.contains("tensor")) return {request.inputs.at(j["tensor"].get<std::size_t>())};
  if (j.contains("dtype")) return {dtype_named(j["dtype"].get<std::string>()).value()};
  if (j.contains("ellipsis")) return {ForeignEllipsis{}};
  if (j.contains("number")) {
    const std::string word = j["number"];
    return {word == "nan" ? std::numeric_limits<double>::quiet_NaN() : word == "inf" ? INFINITY : -INFINITY};
  }
  ForeignSlice slice;
  const auto bound = [&](std::size_t k) {
    return j["slice"][k].is_null() ? std::optional<ir::Dim>() : ir::Dim(j["slice"][k].get<std::int64_t>());
  };
  slice.start = bound(0);
  slice.stop = bound(1);
  slice.step = bound(2);
  return {slice};
}

void add_inputs(Request& request, const json& inputs, void* const* data) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const auto shape = inputs[i]["shape"].get<std::vector<std::int64_t>>(), strides = inputs[i]["strides"].get<std::vector<std::int64_t>>();
    const DType dtype = dtype_named(inputs[i]["dtype"].get<std::string>()).value();
    ir::Type type = ir::Type::tensor(dtype, ir::Shape(shape.begin(), shape.end()));
    type.strides = ir::Shape(strides.begin(), strides.end());
    request.inputs.push_back(request.graph.add_input(std::move(type)));
    request.views.push_back({data[i], dtype, shape, strides});
  }
}

/// Replaces composites, and pointwise nodes by their bodies, until only primitives are left.
void expand_all(ir::Graph& graph) {
  for (int round = 0; round < 8; ++round) {
    const std::vector<NodeId> nodes(graph.nodes().begin(), graph.nodes().end());
    for (NodeId id : nodes)
      if (find_op(graph.node(id).op)->decompose) expand_node(graph, id);
  }
  const std::vector<NodeId> nodes(graph.nodes().begin(), graph.nodes().end());
  for (NodeId id : nodes) expand_node(graph, id);
}

json run(const json& j, void* const* data, std::vector<HostTensor>& results) {
  Request request;
  add_inputs(request, j["inputs"], data);
  const std::string name = j["name"];
  ForeignCall call{.name = name, .positional = {}, .keyword = {}, .flavour = j["flavour"] == "numpy" ? Flavour::numpy : Flavour::torch};
  for (const json& a : j["args"]) call.positional.push_back(argument(a, request));
  for (const auto& [key, a] : j["kwargs"].items()) call.keyword.emplace_back(key, argument(a, request));
  NodeBuilder builder(request.graph);
  auto made = call_foreign_shaped(builder, call);
  if (!made) return {{"code", code_name(made.error().code)}, {"error", made.error().message}};
  for (ir::ValueId v : made->values) request.graph.add_output({.value = v});
  if (j.value("expand", false)) expand_all(request.graph);
  results = evaluate(request.graph, request.views, j.value("judge", false) ? Precision::judge : Precision::native);
  json answer{{"container", made->container == Container::single  ? "single"
                            : made->container == Container::tuple ? "tuple"
                                                                  : "list"},
              {"results", json::array()}};
  for (const HostTensor& t : results) answer["results"].push_back({{"dtype", name_of(t.dtype)}, {"shape", t.shape}});
  for (NodeId id : request.graph.nodes()) answer["nodes"].push_back(request.graph.node(id).op);
  return answer;
}

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT Run* ops_run(const char* request, void* const* data) {
  auto* r = new Run;
  try {
    r->text = run(json::parse(request), data, r->results).dump();
  } catch (const Exception& e) {
    r->text = json{{"code", code_name(e.code())}, {"error", e.what()}}.dump();
  } catch (const std::exception& e) {
    r->text = json{{"code", "internal"}, {"error", e.what()}}.dump();
  }
  return r;
}

EXPORT const char* ops_text(Run* r) { return r->text.c_str(); }
EXPORT const void* ops_data(Run* r, int i) { return r->results[static_cast<std::size_t>(i)].data(); }
EXPORT void ops_free(Run* r) { delete r; }

/// Every op with its schema and aliases.
EXPORT const char* ops_catalogue() {
  static const std::string text = [] {
    json all = json::array();
    for (const Op& op : all_ops()) {
      json names = json::array();
      for (const Alias& a : op.aliases) names.push_back(a.name);
      all.push_back({{"name", op.name}, {"schema", op.schema}, {"aliases", names}, {"body", bool(op.body)}});
    }
    return all.dump();
  }();
  return text.c_str();
}
