// Faults against the contract: claims, failures, crashes.
#include <cfenv>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "mutant.h"

namespace tenon::mutants {
namespace {

bool is_zero_size(const Run& run) {
  for (const ops::TensorView& input : run.inputs)
    for (std::int64_t size : input.shape)
      if (size == 0) return true;
  return false;
}

bool is_zero_dimensional(const Run& run) { return !run.inputs.empty() && run.inputs[0].shape.empty(); }

}  // namespace

std::vector<Mutant> contract_faults() {
  return {
      {.name = "claims_unknown_node", .claim = [](const GraphView& graph, Claims& claims) {
         const std::uint32_t nodes[] = {0, static_cast<std::uint32_t>(graph.node_count()) + 5};
         claims.claim(nodes);
       }},
      {.name = "claims_a_node_twice", .claim = [](const GraphView&, Claims& claims) {
         const std::uint32_t nodes[] = {0, 0};
         claims.claim(nodes);
       }},
      {.name = "claims_and_refuses_to_compile", .graph = [](ir::Graph&) { throw Failure(TENON_UNSUPPORTED, "not after all"); }},
      {.name = "throws_an_int_in_claim", .claim = [](const GraphView&, Claims&) { throw 42; }},
      {.name = "changes_the_rounding_mode", .written = [](Run&) { std::fesetround(FE_DOWNWARD); }},
      {.name = "changes_the_rounding_mode_at_compile", .graph = [](ir::Graph&) { std::fesetround(FE_UPWARD); }},
      {.name = "fails_on_zero_dimensions", .before = [](Run& run) { if (is_zero_dimensional(run)) throw std::runtime_error("0-d"); }},
      {.name = "crashes_on_zero_size", .before = [](Run& run) { if (is_zero_size(run)) std::abort(); }},
      {.name = "exits_on_zero_size", .before = [](Run& run) { if (is_zero_size(run)) std::_Exit(0); }},
      {.name = "hangs_on_zero_size", .before = [](Run& run) { if (is_zero_size(run)) std::this_thread::sleep_for(std::chrono::hours(1)); }},
  };
}

}  // namespace tenon::mutants
