// A seeded fault: what a right backend does differently at one point.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "core/ir/graph.h"
#include "core/ops/reference/reference.h"
#include "tenon/backend.h"

namespace tenon::mutants {

/// What an artefact remembers between its calls.
struct State {
  std::vector<const void*> first_inputs;
  std::vector<ops::HostTensor> first_outputs;
  std::vector<std::int64_t> first_symbols;
  std::vector<std::byte> scratch;
  int calls = 0;
};

/// One execution: inputs as they came, outputs as they will be written.
struct Run {
  const ir::Graph& graph;
  const TenonExecuteArgs& args;
  State& state;
  std::vector<ops::TensorView> inputs;
  std::vector<std::int64_t> symbols;
  std::vector<ops::HostTensor> outputs;
};

struct Mutant {
  std::string name;
  std::function<void(const GraphView&, Claims&)> claim = {};  // instead of claiming everything
  std::function<void(ir::Graph&)> graph = {};                 // at compile, before constants are read
  std::function<void(DLTensor&)> constant = {};               // at compile, on each constant
  std::function<void(Run&)> before = {};                      // before computing
  std::function<void(Run&)> after = {};                       // before writing the outputs
  std::function<void(Run&)> written = {};                     // after writing them
};

std::vector<Mutant> value_faults();
std::vector<Mutant> memory_faults();
std::vector<Mutant> state_faults();
std::vector<Mutant> graph_faults();
std::vector<Mutant> contract_faults();

/// The mutant that the options name ({"mutant": "stale_output"}); without a name the right backend. Throws (not_found), listing all.
const Mutant& chosen_mutant(const std::string& options);

}  // namespace tenon::mutants
