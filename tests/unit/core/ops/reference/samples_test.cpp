// Every sample of every op: the reference in native precision against itself in float64.
#include "core/ops/reference/sample.h"

#include "catch.h"
#include "core/ops/catalog.h"

using namespace tenon;
using namespace tenon::ops;

TEST_CASE("every op infers and runs its own samples, close to float64") {
  for (const Op& op : all_ops()) {
    for (const Sample& sample : samples_of(op)) {
      INFO(op.name << " / " << sample.name);
      try {
        const ir::Graph graph = sample_graph(op, sample);
        const auto inputs = sample_inputs(sample, 1);
        std::vector<TensorView> views;
        for (const SampleInput& i : inputs) views.push_back(i.view);
        const auto got = evaluate(graph, views), want = evaluate(graph, views, Precision::judge);
        REQUIRE(got.size() == graph.outputs().size());
        for (std::size_t k = 0; k < got.size(); ++k) {
          CHECK(got[k].dtype == graph.type(graph.outputs()[k].value).dtype);
          const auto difference = first_difference(got[k].view(), want[k].view(), sample.tolerance);
          INFO(difference.value_or(""));
          CHECK_FALSE(difference);
        }
      } catch (const Exception& e) {
        FAIL_CHECK(e.what());
      }
    }
  }
}

TEST_CASE("every op has samples, one meaning, and a schema") {
  for (const Op& op : all_ops()) {
    INFO(op.name);
    if (op.traits.opaque || op.traits.control) continue;  // the meaning is that of a function of the driver, or of its regions
    CHECK((op.name == "constant" || !samples_of(op).empty()));
    CHECK(int(bool(op.body)) + bool(op.loop) + bool(op.scatter) + bool(op.decompose) + bool(op.kernel) == 1);
    CHECK(op.schema.front() == '(');
    const bool takes_tensors = op.schema.find("Tensor") < op.schema.find("->");
    CHECK((takes_tensors || op.traits.creates || op.name == "constant"));  // what has no operands can be asked for on any device
    CHECK(op.traits.creates == (op.schema.find("str? device=None") != std::string::npos));
  }
}
