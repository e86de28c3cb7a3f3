#include "variations.h"

#include <algorithm>
#include <array>
#include <exception>
#include <numeric>
#include <optional>
#include <thread>

#include "chained_sample.h"
#include "constant_sample.h"
#include "execution.h"
#include "literal_sample.h"
#include "symbolic_sample.h"

namespace tenon::conformance {
namespace {

constexpr std::uint64_t kSeed = 7;
constexpr Outcome kNotApplicable{Status::not_applicable, {}};

ir::Graph row_major_graph(const Trial& trial) {
  ir::Graph graph = ops::sample_graph(trial.op, trial.sample);
  for (ValueId input : graph.inputs()) graph.set_strides(input, {});
  return graph;
}

/// The graph of a sample as the backend would get it from a host: without strides if it takes none.
std::unique_ptr<TestGraph> graph_for(const Trial& trial) {
  const bool takes_strides = trial.backend.has(TENON_STRIDED_INPUTS);
  return std::make_unique<TestGraph>(trial.backend.device(), takes_strides ? ops::sample_graph(trial.op, trial.sample) : row_major_graph(trial));
}

std::vector<TestInput> inputs_for(const Trial& trial, std::uint64_t seed, Placement placement = {}) {
  placement.device = &trial.backend.device();
  placement.row_major = !trial.backend.has(TENON_STRIDED_INPUTS);
  return make_inputs(trial.sample, seed, placement);
}

/// What the definitions give for some inputs: in float64, and, where a run differs from that, in the dtype itself. Where float64 is far
/// from the dtype (a sum of infinities that only overflow makes), what the definitions give in the dtype is right too.
class Expected {
 public:
  Expected(const ir::Graph& graph, const std::vector<TestInput>& inputs) : graph_(graph), views_(views_of(inputs)), judge_(ops::evaluate(graph, views_, ops::Precision::judge)) {}

  void require(const Execution& execution, double tolerance) {
    try {
      execution.require_equal(judge_, tolerance);
    } catch (const BackendFailure& difference) {
      if (!native_) native_ = ops::evaluate(graph_, views_);
      try {
        execution.require_equal(*native_, tolerance);
      } catch (const BackendFailure&) {
        throw difference;
      }
    }
  }

 private:
  const ir::Graph& graph_;
  std::vector<ops::TensorView> views_;
  std::vector<ops::HostTensor> judge_;
  std::optional<std::vector<ops::HostTensor>> native_;
};

void judge(const Execution& execution, const ir::Graph& graph, const std::vector<TestInput>& inputs, double tolerance) {
  Expected(graph, inputs).require(execution, tolerance);
}

void run_and_judge(const Trial& trial, const CompiledGroup& group, const TestGraph& graph, const std::vector<TestInput>& inputs) {
  judge(Execution(group, graph, inputs), graph.graph(), inputs, trial.sample.tolerance);
}

/// False where the definitions refuse these values (an index out of range).
bool is_defined(const ir::Graph& graph, const std::vector<TestInput>& inputs) {
  try {
    ops::evaluate(graph, views_of(inputs));
    return true;
  } catch (const Exception& refusal) {
    if (refusal.code() != Code::invalid_argument) throw;
    return false;
  }
}

Outcome plain(const Trial& trial) {
  const auto graph = graph_for(trial);
  const ClaimAnswer answer = trial.backend.claim(graph->crossing(), graph->node_count());
  if (!answer.takes_all(graph->node_count())) return {Status::not_claimed, answer.refusal};
  run_and_judge(trial, trial.backend.compile(graph->crossing()), *graph, inputs_for(trial, kSeed));
  return {};
}

Outcome byte_offset(const Trial& trial) {
  const auto graph = graph_for(trial);
  run_and_judge(trial, trial.backend.compile(graph->crossing()), *graph, inputs_for(trial, kSeed, {.misaligned = true}));
  return {};
}

Outcome page_end(const Trial& trial) {
  const auto graph = graph_for(trial);
  run_and_judge(trial, trial.backend.compile(graph->crossing()), *graph, inputs_for(trial, kSeed, {.at_page_end = true}));
  return {};
}

Outcome repeated(const Trial& trial) {
  const auto graph = graph_for(trial);
  const CompiledGroup group = trial.backend.compile(graph->crossing());
  const auto first = inputs_for(trial, kSeed);
  const auto second = inputs_for(trial, kSeed + 1);
  for (const auto* inputs : {&first, &second, &first}) run_and_judge(trial, group, *graph, *inputs);
  return {};
}

Outcome recompiled(const Trial& trial) {
  const auto graph = graph_for(trial);
  auto first = std::make_unique<CompiledGroup>(trial.backend.compile(graph->crossing()));
  run_and_judge(trial, *first, *graph, inputs_for(trial, kSeed));
  const CompiledGroup second = trial.backend.compile(graph->crossing());
  first.reset();
  run_and_judge(trial, second, *graph, inputs_for(trial, kSeed + 2));
  return {};
}

Outcome stored(const Trial& trial) {
  const auto graph = graph_for(trial);
  auto original = std::make_unique<CompiledGroup>(trial.backend.compile(graph->crossing()));
  const auto loaded = trial.backend.reload(*original);
  if (!loaded) return kNotApplicable;
  original.reset();
  run_and_judge(trial, *loaded, *graph, inputs_for(trial, kSeed));
  return {};
}

/// Asks for the sample with these operands as constants, and runs what the host would make of the answer: the constants that the
/// backend does not take with the node are inputs of the group.
bool run_with_constants(const Trial& trial, std::span<const std::size_t> constants, Expected& expected) {
  const TestGraph asked(trial.backend.device(), with_constants(trial.op, trial.sample, constants, kSeed));
  const ClaimAnswer answer = trial.backend.claim(asked.crossing(), asked.node_count());
  const auto first = static_cast<std::uint32_t>(constants.size());
  const std::vector<std::uint32_t>* group = answer.group_of(first);
  for (std::uint32_t node = first; node < asked.node_count(); ++node)
    if (!group || answer.group_of(node) != group) return false;
  std::vector<std::size_t> baked;
  for (std::uint32_t k = 0; k < first; ++k)
    if (trial.backend.has(TENON_BAKED_CONSTANTS) || std::ranges::find(*group, k) != group->end()) baked.push_back(constants[k]);

  const TestGraph graph(trial.backend.device(), with_constants(trial.op, trial.sample, baked, kSeed));
  auto inputs = make_inputs(trial.sample, kSeed, {.device = &trial.backend.device(), .row_major = true});
  for (std::size_t k = baked.size(); k-- > 0;) inputs.erase(inputs.begin() + static_cast<std::ptrdiff_t>(baked[k]));
  const CompiledGroup compiled = trial.backend.compile(graph.crossing());
  expected.require(Execution(compiled, graph, inputs), trial.sample.tolerance);
  return true;
}

Outcome constant_operand(const Trial& trial) {
  const auto inputs = make_inputs(trial.sample, kSeed, {.device = &trial.backend.device(), .row_major = true});
  const ir::Graph plain = row_major_graph(trial);
  Expected expected(plain, inputs);
  std::vector<std::vector<std::size_t>> choices;
  for (std::size_t i = 0; i < inputs.size(); ++i) choices.push_back({i});
  if (inputs.size() > 1) {
    std::vector<std::size_t>& all = choices.emplace_back(inputs.size());
    std::iota(all.begin(), all.end(), std::size_t{0});
  }
  bool ran = false;
  for (const std::vector<std::size_t>& constants : choices) {
    try {
      ran = run_with_constants(trial, constants, expected) || ran;
    } catch (const BackendFailure& failure) {
      throw BackendFailure(fmt::format("with {} as constants: {}", constants.size() == 1 ? fmt::format("operand {}", constants[0]) : "all operands", failure.what()));
    }
  }
  return ran ? Outcome{} : kNotApplicable;
}

/// False where the op takes no number there, or the backend not the node with it.
bool run_with_literal(const Trial& trial, std::size_t input) {
  auto made = with_literal_operand(trial.op, trial.sample, input);
  if (!made) return false;
  const TestGraph graph(trial.backend.device(), *std::move(made));
  auto inputs = make_inputs(trial.sample, kSeed, {.device = &trial.backend.device(), .row_major = true});
  inputs.erase(inputs.begin() + static_cast<std::ptrdiff_t>(input));
  if (!is_defined(graph.graph(), inputs)) return false;
  if (!trial.backend.claim(graph.crossing(), graph.node_count()).takes_all(graph.node_count())) return false;
  run_and_judge(trial, trial.backend.compile(graph.crossing()), graph, inputs);
  return true;
}

Outcome literal_operand(const Trial& trial) {
  bool ran = false;
  const auto tensors = static_cast<std::size_t>(std::ranges::count_if(trial.sample.operands, [](const auto& operand) { return !operand.literal; }));
  for (std::size_t input = 0; input < tensors; ++input) {
    try {
      ran = run_with_literal(trial, input) || ran;
    } catch (const BackendFailure& failure) {
      throw BackendFailure(fmt::format("with operand {} as a number: {}", input, failure.what()));
    }
  }
  return ran ? Outcome{} : kNotApplicable;
}

Outcome large_unsigned(const Trial& trial) {
  ops::Sample sample = trial.sample;
  bool has_any = false;
  for (ops::SampleOperand& operand : sample.operands) {
    if (operand.literal || operand.dtype != DType::u8 || operand.fill != ops::Fill::normal) continue;
    operand.fill = ops::Fill::special;
    has_any = true;
  }
  return has_any ? plain({trial.backend, trial.op, sample}) : kNotApplicable;
}

Outcome applied_twice(const Trial& trial) {
  auto made = chained(trial.op, trial.sample);
  if (!made) return kNotApplicable;
  const TestGraph graph(trial.backend.device(), std::move(*made));
  if (!trial.backend.claim(graph.crossing(), graph.node_count()).takes_all(graph.node_count())) return kNotApplicable;
  const auto inputs = make_inputs(trial.sample, kSeed, {.device = &trial.backend.device(), .row_major = true});
  if (!is_defined(graph.graph(), inputs)) return kNotApplicable;
  const CompiledGroup group = trial.backend.compile(graph.crossing());
  constexpr double kTwoErrors = 4;  // the second node magnifies the error of the first
  judge(Execution(group, graph, inputs), graph.graph(), inputs, kTwoErrors * trial.sample.tolerance);
  return {};
}

Outcome symbols(const Trial& trial) {
  if (!trial.backend.has(TENON_DYNAMIC_SHAPES)) return kNotApplicable;
  auto made = with_symbols(trial.op, trial.sample);
  if (!made) return kNotApplicable;
  const TestGraph graph(trial.backend.device(), std::move(made->graph));
  if (!trial.backend.claim(graph.crossing(), graph.node_count()).takes_all(graph.node_count())) return kNotApplicable;
  const CompiledGroup group = trial.backend.compile(graph.crossing());
  for (const ops::Sample& sample : made->sizes) {
    const auto inputs = make_inputs(sample, kSeed, {.device = &trial.backend.device(), .row_major = true});
    if (!group.assumptions_hold(graph.bind(shapes_of(inputs)))) continue;
    run_and_judge(trial, group, graph, inputs);
  }
  return {};
}

Outcome concurrent(const Trial& trial) {
  if (!trial.backend.has(TENON_EXECUTE_REENTRANT)) return kNotApplicable;
  const auto graph = graph_for(trial);
  const CompiledGroup group = trial.backend.compile(graph->crossing());
  constexpr int kThreads = 4, kRounds = 6;
  struct Caller {
    std::vector<TestInput> inputs;
    std::vector<std::unique_ptr<Execution>> executions;
    std::exception_ptr failure;
  };
  std::array<Caller, kThreads> callers;
  for (int t = 0; t < kThreads; ++t) callers[t].inputs = inputs_for(trial, kSeed + 10 + static_cast<std::uint64_t>(t));
  std::vector<std::thread> threads;
  for (Caller& caller : callers)
    threads.emplace_back([&] {
      try {
        for (int round = 0; round < kRounds; ++round) caller.executions.push_back(std::make_unique<Execution>(group, *graph, caller.inputs));
      } catch (...) {
        caller.failure = std::current_exception();
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const Caller& caller : callers) {
    if (caller.failure) std::rethrow_exception(caller.failure);
    for (const auto& execution : caller.executions) judge(*execution, graph->graph(), caller.inputs, trial.sample.tolerance);
  }
  return {};
}

constexpr Variation kVariations[] = {
    {"plain", "the values, shapes and bounds of one run", plain},
    {"byte_offset", "inputs that are aligned to their element only", byte_offset},
    {"page_end", "inputs behind which no memory can be read", page_end},
    {"repeated", "the same artefact on other inputs at other addresses, and back", repeated},
    {"recompiled", "a second artefact of the same graph after the first is released", recompiled},
    {"stored", "an artefact that was serialised and loaded", stored},
    {"constant_operand", "each operand, and all of them, as constants (whose tensors state a byte offset where the backend takes them with the node)", constant_operand},
    {"literal_operand", "each operand as a number of the graph", literal_operand},
    {"large_unsigned", "unsigned integers above 127", large_unsigned},
    {"chained", "the op on its own result, as one group", applied_twice},
    {"symbols", "symbolic sizes, compiled once and run at several", symbols},
    {"concurrent", "one artefact on several threads", concurrent},
};

}  // namespace

std::span<const Variation> variations() { return kVariations; }

}  // namespace tenon::conformance
