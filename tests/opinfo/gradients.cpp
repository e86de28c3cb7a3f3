// The gradients of a graph in text form, computed by the reference: what the walk over torch's operator database compares with torch's.
#include <cstdio>
#include <cstring>
#include <exception>

#include "core/ir/parser.h"
#include "core/ops/check/type_checker.h"
#include "core/ops/reference/reference.h"
#include "core/rewrite/backward.h"

namespace {

using namespace tenon;

/// One array as Python hands it over: row-major.
struct Array {
  void* data;
  std::int32_t dtype;  // tenon::DType
  std::int32_t rank;
  const std::int64_t* shape;
};

ops::TensorView view_of(const Array& a) {
  ops::TensorView view{.data = a.data, .dtype = static_cast<DType>(a.dtype), .shape = {a.shape, a.shape + a.rank}, .strides = std::vector<std::int64_t>(static_cast<std::size_t>(a.rank), 1)};
  for (std::size_t d = view.shape.size(); d-- > 1;) view.strides[d - 1] = view.strides[d] * view.shape[d];
  return view;
}

void say(char* message, std::size_t size, const char* what) { std::snprintf(message, size, "%s", what); }

}  // namespace

#define EXPORTED extern "C" __attribute__((visibility("default")))

/// The graph of the gradients of the graph's results by its inputs, of that order; null where it has none, and `message` says why: it begins
/// with "unsupported: " where an op refuses.
EXPORTED ir::Graph* gradients_make(const char* text, int order, char* message, std::size_t size) {
  try {
    auto parsed = ir::parse_graph(text);
    if (!parsed) throw Exception(parsed.error());
    ir::Graph graph = std::move(*parsed);
    std::vector<ir::Output> results(graph.outputs().begin(), graph.outputs().end());
    std::erase_if(results, [](const ir::Output& o) { return o.kind != ir::OutputKind::result; });
    graph.set_outputs(std::move(results));
    for (; order > 0; --order) graph = rewrite::backward_graph(graph);
    if (auto accepted = ops::accept_graph(graph); !accepted) throw std::runtime_error(accepted.error().message);
    return new ir::Graph(std::move(graph));
  } catch (const Exception& e) {
    say(message, size, ((e.code() == Code::unsupported ? "unsupported: " : "") + std::string(e.what())).c_str());
  } catch (const std::exception& e) {
    say(message, size, e.what());
  }
  return nullptr;
}

/// Runs the graph: every output goes to an array of its shape and dtype. False where that fails.
EXPORTED bool gradients_run(const ir::Graph* graph, const Array* inputs, std::size_t input_count, const Array* outputs, std::size_t output_count, char* message, std::size_t size) {
  try {
    std::vector<ops::TensorView> views;
    for (std::size_t k = 0; k < input_count; ++k) views.push_back(view_of(inputs[k]));
    const auto results = ops::evaluate(*graph, views);
    if (results.size() != output_count) throw std::runtime_error("other results than asked for");
    for (std::size_t k = 0; k < output_count; ++k) {
      const ops::TensorView to = view_of(outputs[k]);
      if (results[k].dtype != to.dtype || results[k].shape != to.shape) throw std::runtime_error("a gradient of another type than its input");
      std::memcpy(to.data, results[k].data(), results[k].byte_count());
    }
    return true;
  } catch (const std::exception& e) {
    say(message, size, e.what());
    return false;
  }
}

EXPORTED void gradients_free(ir::Graph* graph) { delete graph; }
