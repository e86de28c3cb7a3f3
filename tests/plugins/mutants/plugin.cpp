// A backend that evaluates by the definitions, and so is right, but for the fault of the chosen mutant.
#include <algorithm>
#include <cstring>
#include <deque>
#include <numeric>

#include "core/ir/buffer.h"
#include "mutant.h"

namespace tenon::mutants {
namespace {

std::vector<std::int64_t> evaluated(const ir::Shape& dims, std::span<const std::int64_t> symbols) {
  std::vector<std::int64_t> values;
  for (const ir::Dim& dim : dims) values.push_back(dim.evaluate(symbols));
  return values;
}

class MutantArtefact : public Artefact {
 public:
  MutantArtefact(const Mutant& mutant, ir::Graph graph, std::deque<DLTensor> constants)
      : mutant_(mutant), graph_(std::move(graph)), constants_(std::move(constants)) {}

  std::size_t workspace_bytes(std::span<const std::int64_t>) override { return 256; }

  void execute(const TenonExecuteArgs& args) override {
    Run run{graph_, args, state_, {}, {args.symbols, args.symbols + graph_.symbols().size()}, {}};
    for (std::size_t i = 0; i < graph_.inputs().size(); ++i) run.inputs.push_back(input_view(run, i));
    if (mutant_.before) mutant_.before(run);
    run.outputs = ops::evaluate(graph_, run.inputs);
    if (mutant_.after) mutant_.after(run);
    for (std::size_t i = 0; i < run.outputs.size(); ++i) write(run, i);
    if (mutant_.written) mutant_.written(run);
  }

 private:
  ops::TensorView input_view(const Run& run, std::size_t i) const {
    const ir::Type& type = graph_.type(graph_.inputs()[i]);
    return {const_cast<void*>(run.args.inputs[i]), type.dtype, evaluated(type.shape, run.symbols), evaluated(type.resolved_strides(), run.symbols)};
  }

  static void write(Run& run, std::size_t i) {
    const ops::HostTensor& output = run.outputs[i];
    void* memory = run.args.outputs[i];
    if (!memory) memory = run.args.call->allocate_output(run.args.call->self, static_cast<std::uint32_t>(i), output.shape.data(), output.shape.size());
    if (output.byte_count()) std::memcpy(memory, output.data(), output.byte_count());
  }

  const Mutant& mutant_;
  ir::Graph graph_;
  std::deque<DLTensor> constants_;
  State state_;
};

class MutantBackend : public Backend {
 public:
  static constexpr std::uint32_t kFlags = TENON_DYNAMIC_SHAPES | TENON_COMPILE_REENTRANT | TENON_EXECUTE_REENTRANT | TENON_STRIDED_INPUTS;

  MutantBackend(HostServices, const std::string& options) : mutant_(chosen_mutant(options)) {}

  void claim(const GraphView& graph, Claims& claims) override {
    if (mutant_.claim) return mutant_.claim(graph, claims);
    std::vector<std::uint32_t> all(graph.nodes().size());
    std::iota(all.begin(), all.end(), 0u);
    claims.claim(all);
  }

  std::unique_ptr<Artefact> compile(const GraphView& view, std::span<const DLTensor* const> constants, const std::string&) override {
    std::deque<DLTensor> tensors;
    std::vector<const DLTensor*> pointers;
    for (const DLTensor* constant : constants) {
      pointers.push_back(&tensors.emplace_back(*constant));
      if (mutant_.constant) mutant_.constant(tensors.back());
    }
    ir::Graph graph = ir::read_buffer(view.bytes(), pointers).value();
    if (mutant_.graph) mutant_.graph(graph);
    return std::make_unique<MutantArtefact>(mutant_, std::move(graph), std::move(tensors));
  }

 private:
  const Mutant& mutant_;
};

}  // namespace
}  // namespace tenon::mutants

TENON_BACKEND(tenon::mutants::MutantBackend, "mutants", TENON_PLUGIN_VERSION)
