#include "run/kernels.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "compile/ptx.h"
#include "core/base/hash.h"
#include "core/ops/build/node_builder.h"
#include "core/ops/catalog.h"
#include "fusion/step_nodes.h"
#include "graph/decomposition.h"
#include "graph/statistics.h"
#include "products/ends_of_products.h"
#include "products/laid_products.h"
#include "products/product_emitter.h"
#include "run/early_steps.h"
#include "run/kept_inputs.h"
#include "schedule/gpu_machine.h"

namespace tenon::cuda {

using codegen::KernelStep;
using ir::ValueId;

namespace {

/// By buffer whether it is a number of the host; the same for all runs of the step, or none.
std::optional<std::vector<bool>> numbers_of(const ir::Graph& graph, const KernelStep& step) {
  const auto of_run = [&](const std::vector<ValueId>& values) {
    std::vector<bool> numbers;
    for (const ValueId v : values) numbers.push_back(!codegen::is_local(v) && v.value < graph.value_capacity() && graph.type(v).is_host_scalar() && graph.value(v).kind == ir::ValueKind::input);
    return numbers;
  };
  const std::vector<bool> first = of_run(step.buffers);
  for (const auto& other : step.others)
    if (of_run(other) != first) return std::nullopt;
  return first;
}

/// Numbers of the host that the group reads come as parameters: copies of them on the card are they.
void read_numbers_where_they_are(ir::Graph& graph) {
  std::vector<ir::NodeId> copies;
  for (const ir::NodeId id : graph.nodes()) {
    const ir::Node& node = graph.node(id);
    if (node.op != "to_device" || !graph.type(node.operands[0]).is_host_scalar()) continue;
    graph.replace_uses(node.results[0], node.operands[0]);
    copies.push_back(id);
  }
  graph.erase_nodes(copies);
}

/// A node that planning knows nothing of; null where there is none.
const ir::Node* without_meaning(const ir::Graph& graph) {
  for (const ir::NodeId id : graph.nodes()) {
    const ops::Op* op = ops::find_op(graph.node(id).op);
    if (!op || (!op->body && !op->loop && !op->scatter)) return &graph.node(id);
  }
  return nullptr;
}

/// Points of loops from which a product is worth a call of a library, and how often it reads each element then: what a kernel of this size
/// takes is some ten microseconds, and that of a library a few, beside the ten that its call costs the host.
constexpr double kLargeProduct = 4 * 1024 * 1024, kReads = 32, kReadsOfTwo = 4;
/// The same where sums are so short that their loops wait for what they write.
constexpr double kLargeOfShortSums = 16 * kLargeProduct, kShortSum = 64;

/// Whether a sum has factors that each are the same for all of some outer loop: a matrix product, whatever its shape.
bool has_two_factors(const codegen::Kernel& kernel) {
  if (kernel.inner.empty() || kernel.reductions.empty()) return false;
  const auto is_reused = [&](const codegen::Operation& op) {
    if (op.kind != codegen::OperationKind::load) return false;
    const auto reads_along = [&](const codegen::Loop& loop) { return codegen::mentions(op.offset, loop.variable); };
    return std::ranges::any_of(kernel.inner, reads_along) && !std::ranges::all_of(kernel.outer, reads_along);
  };
  return std::ranges::count_if(kernel.operations, is_reused) >= 2;
}

/// Whether a kernel goes over points far more often than there are elements: a matrix product, a convolution, as loops.
bool is_product(const codegen::Kernel& kernel, const codegen::IndexAlgebra& algebra) {
  const double depth = codegen::estimated_points(algebra, kernel.inner), points = codegen::estimated_points(algebra, kernel.outer) * depth;
  double elements = 1;
  for (const codegen::Buffer& b : kernel.buffers)
    if (!b.row) elements += algebra.estimate(b.bytes) / static_cast<double>(size_of(b.dtype));
  return points >= (depth < kShortSum ? kLargeOfShortSums : kLargeProduct) && points >= (has_two_factors(kernel) ? kReadsOfTwo : kReads) * elements;
}

/// " from -68": bytes from the beginning of a value to where its parameter points. Nothing where that differs by run.
std::optional<std::string> start_of(const KernelStep& step, std::size_t buffer) {
  if (step.starts.empty()) return "";
  for (std::size_t i = buffer; i < step.starts.size(); i += step.buffers.size())
    if (step.starts[i] != step.starts[buffer]) return std::nullopt;
  return step.starts[buffer] == 0 ? "" : fmt::format(" from {}", step.starts[buffer] * static_cast<std::int64_t>(size_of(step.kernel.buffers[buffer].dtype)));
}

/// What the parameters of a kernel are: "reads 4096 bytes from -68 at 4, number, writes 4096 bytes at 16". What comes behind `at` the address is a multiple
/// of; what comes behind `from`, where it points to, from the beginning of the bytes on.
std::string memory_of(const KernelStep& step, const Schedule& schedule) {
  std::vector<std::string> parameters;
  for (std::size_t b = 0; b < memory_buffers(step.kernel); ++b) {
    const codegen::Buffer& buffer = step.kernel.buffers[b];
    const std::optional<std::string> start = start_of(step, b);
    const std::string size = buffer.bytes.is_constant() ? fmt::format(" {} bytes", buffer.bytes.constant()) : "";
    const std::string bytes = start ? size + *start : " 0 bytes";
    parameters.push_back(schedule.is_number(b) ? "number" : fmt::format("{}{} at {}", buffer.written ? "writes" : "reads", bytes, schedule.alignments[b]));
  }
  return fmt::format("{}", fmt::join(parameters, ", "));
}

/// The node alone, over inputs of its own.
ir::Graph graph_of_one(const ir::Graph& graph, const ir::Node& node) {
  ir::Graph alone;
  for (const ir::SymbolInfo& symbol : graph.symbols()) alone.add_symbol(symbol);
  std::vector<ValueId> operands;
  for (const ValueId v : node.operands) operands.push_back(graph.value(v).kind == ir::ValueKind::literal ? alone.add_literal(graph.value(v).literal) : alone.add_input(graph.type(v)));
  std::vector<ir::Type> types;
  for (const ValueId v : node.results) types.push_back(graph.type(v));
  const ir::NodeId id = alone.add_node(node.op, std::move(operands), node.attributes, std::move(types));
  for (const ValueId v : alone.node(id).results) alone.add_output({v, ir::OutputKind::result, {}});
  return alone;
}

const char* name_of_step(const codegen::Step& step) {
  return std::holds_alternative<codegen::LibraryStep>(step) ? "a kernel that is written out" : "a product by tiles";
}

}  // namespace

void prepare(ir::Graph& graph) {
  codegen::decompose_composites(graph, true);
  codegen::share_statistics(graph);
  read_numbers_where_they_are(graph);
  lay_products(graph);
  move_ends_of_products(graph);
  std::vector<ir::Output> outputs(graph.outputs().begin(), graph.outputs().end());
  std::set<std::uint32_t> seen;
  for (ir::Output& output : outputs) {
    if (graph.value(output.value).kind == ir::ValueKind::result && seen.insert(output.value.value).second) continue;
    output.value = ops::NodeBuilder(graph).one("clone", {output.value});
    graph.set_strides(output.value, std::nullopt);
  }
  graph.set_outputs(std::move(outputs));
}

Result<ScheduledPlan> scheduled_plan(const ir::Graph& graph, const PlanChoices& choices) {
  codegen::PlanOptions options;
  options.fuse = choices.fuse;
  if (choices.has_tensor_cores) options.stored = written_for_products(graph);
  const GpuMachine machine(choices.has_tensor_cores);
  ScheduledPlan made{codegen::make_plan(graph, machine, options), {}, {}};
  make_kernels_of_products(made.plan, graph, machine, {choices.rounding, choices.has_clusters, choices.has_warpgroups});
  keep_inputs(made.plan, graph);
  start_early(made.plan, graph);
  for (const codegen::Step& step : made.plan.steps) {
    const auto* kernel = std::get_if<KernelStep>(&step);
    if (!kernel) return error(Code::unsupported, "{} has no code for this target", name_of_step(step));
    Result<Schedule> chosen = schedule(kernel->kernel, starts_of_all_runs(kernel->starts, kernel->buffers.size()));
    if (!chosen) return chosen.error();
    const auto numbers = numbers_of(graph, *kernel);
    if (!numbers) return error(Code::unsupported, "runs of a kernel that read numbers of the host and others have no code for this target");
    chosen->numbers = *numbers;
    chosen->runs = runs_at_once(kernel->kernel, *chosen, kernel->others.size() + 1);
    made.schedules.push_back(*std::move(chosen));
    made.names.push_back(codegen::name_of(graph, codegen::computed_nodes(graph, made.plan, *kernel)));
  }
  return made;
}

Result<ScheduledPlan> plan_with_code(const ir::Graph& graph, PlanChoices choices) {
  if (choices.fuse)
    if (auto plan = scheduled_plan(graph, choices)) return plan;
  choices.fuse = false;
  return scheduled_plan(graph, choices);
}

std::optional<codegen::Refusal> refuse_code(const ir::Graph& graph, const ir::Node& node, PlanChoices choices) {
  ir::Graph alone = graph_of_one(graph, node);
  prepare(alone);
  if (const ir::Node* unknown = without_meaning(alone)) return codegen::Refusal{"op", fmt::format("{} has no loops", unknown->op.text())};
  choices.fuse = false;
  if (const auto apart = scheduled_plan(alone, choices); !apart) return codegen::Refusal{"op", apart.error().message};
  choices.fuse = true;
  const ScheduledPlan plan = plan_with_code(alone, choices).value();  // what it costs: what it is made of reads its operands where they lie
  for (std::size_t i = 0; i < plan.schedules.size(); ++i) {
    const auto& product = plan.schedules[i].product;
    const auto& attention = plan.schedules[i].attention;
    if (attention && is_faster_by_library(*attention)) return codegen::Refusal{"cost", "a library's attention is faster at its size"};
    if (attention) continue;
    if (product && is_faster_by_library(*product)) return codegen::Refusal{"cost", "a library's product is faster at its size, or as its operands lie"};
    if (!product && is_product(plan.step(i).kernel, plan.plan.algebra)) return codegen::Refusal{"cost", "its loops read what they read so often that a library's product is faster"};
  }
  return {};
}

std::string text_of(const ScheduledPlan& plan, std::size_t kernel) {
  const Schedule& s = plan.schedules[kernel];
  std::string text = fmt::format("{} lanes {} alignments {} numbers", memory_of(plan.step(kernel), s), s.lanes, fmt::join(s.alignments, " "));
  for (const bool number : s.numbers) text += number ? " 1" : " 0";
  if (s.runs > 1) text += fmt::format(" runs {}", s.runs);
  if (s.attention) text += " " + s.attention->text();
  else if (s.product) text += " " + s.product->text();
  return text + "\n" + codegen::to_text(plan.step(kernel).kernel);
}

std::string function_of(const ScheduledPlan& plan, std::size_t kernel, const std::string& text) { return fmt::format("{}_{:016x}", plan.names[kernel], content_hash(text).low); }

std::string ptx_of(const ScheduledPlan& plan, std::size_t kernel, const std::string& name, const std::string& architecture) {
  const PtxIsa isa = PtxIsa::of(architecture);
  const KernelStep& step = plan.step(kernel);
  const Schedule& schedule = plan.schedules[kernel];
  const std::string code = to_ptx(architecture, [&](llvm::Module& module) { emit_kernel(module, step.kernel, schedule, isa, name); }, schedule.product.has_value());
  return fmt::format("// {}: {}\n", name, memory_of(step, schedule)) + (schedule.product ? with_clusters(code, name, schedule.product->cluster) : code);
}

PlanChoices choices_for(const std::string& architecture) {
  const int number = PtxIsa::number_of(architecture);
  return {.has_tensor_cores = number >= 80, .has_clusters = number >= 90, .has_warpgroups = architecture == "sm_90a"};
}

bool kernels_wait(const std::string& architecture) { return PtxIsa::of(architecture).waits(); }

ScheduledPlan for_any_start(const ScheduledPlan& plan) {
  ScheduledPlan loose = plan;
  for (std::size_t i = 0; i < loose.schedules.size(); ++i) {
    loose.schedules[i] = schedule(plan.step(i).kernel, std::vector<std::int64_t>(plan.step(i).buffers.size(), 1)).value();
    loose.schedules[i].numbers = plan.schedules[i].numbers;
    loose.schedules[i].runs = plan.schedules[i].runs;
  }
  return loose;
}

}  // namespace tenon::cuda
