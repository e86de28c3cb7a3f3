#include "host/runtime/plan_builder.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/ir/symbol_uses.h"
#include "host/diagnostics/failure.h"
#include "host/diagnostics/profiling.h"
#include "host/diagnostics/progress.h"
#include "host/machine/threads.h"
#include "host/plugins/contact/cancellation.h"

namespace tenon::host {

bool is_row_major(const ir::Type& type) {
  if (!type.strides) return true;
  const ir::Shape expected = ir::row_major_strides(type.shape);
  for (std::size_t i = 0; i < type.shape.size(); ++i)
    if (type.shape[i] != ir::Dim(1) && (*type.strides)[i] != expected[i]) return false;
  return true;
}

PlanBuilder::PlanBuilder(std::shared_ptr<Environment> environment, std::size_t first_backend, std::vector<std::int64_t> expected_sizes)
    : environment_(*environment), first_backend_(first_backend), expected_sizes_(std::move(expected_sizes)), plan_(new Plan) {
  plan_->environment_ = std::move(environment);
  plan_->devices_.push_back(&environment_.devices->host());
}

std::shared_ptr<Plan> PlanBuilder::build(ir::Graph graph) {
  for (const ir::Output& output : graph.outputs()) plan_->output_types_.push_back(graph.type(output.value));
  // Between steps everything is row-major; a layout that an output states is made by a copy at the end.
  for (NodeId n : graph.nodes())
    for (ValueId r : graph.node(n).results) graph.set_strides(r, {});

  std::vector<BackendInstance*> backends;
  for (std::size_t i = first_backend_; i < environment_.backends.size(); ++i) backends.push_back(environment_.backends[i].get());
  expected_sizes_.resize(graph.symbols().size(), 1);
  Partition partitioned = partition(std::move(graph), {backends, environment_.constants, *environment_.events, expected_sizes_, *environment_.devices, environment_.options});
  plan_->graph_.open() = std::move(partitioned.graph);
  const std::vector<NodeId> definers = defining_nodes(plan_->graph_.open());
  for (std::size_t s = 0; s < definers.size(); ++s) {
    late_.push_back(static_cast<bool>(definers[s]));
    if (definers[s]) plan_->late_symbols_.emplace_back(s);
  }
  learn_given_symbols();
  const std::span<const ir::Output> outputs = plan_->graph_.open().outputs();
  for (std::uint32_t k = 0; k < outputs.size(); ++k) positions_[outputs[k].value].push_back(k);
  plan_->output_values_.resize(outputs.size());
  GroupCutter cutter(plan_->graph_.open());
  for (const PlannedGroup& group : partitioned.groups)
    if (group.backend == kCopiedByHost)
      add_transfer(group.nodes.front());
    else if (group.backend == kByHost)
      add_control(group.nodes.front());
    else
      add_group(group, cutter);
  add_outputs();
  finish();
  tell_compiled();
  return plan_;
}

void PlanBuilder::learn_given_symbols() {
  const ir::Graph& graph = plan_->graph_.open();
  std::vector<bool> read(graph.symbols().size(), false);
  const auto note = [&](SymbolId s) { read[s.value] = true; };
  for (ValueId input : graph.inputs()) visit_symbols(graph.type(input), note);
  for (NodeId n : graph.nodes()) visit_symbols(graph, graph.node(n), note);
  for (std::size_t s = 0; s < read.size(); ++s)
    if (read[s] && !late_[s]) plan_->given_symbols_.emplace_back(s);
}

// One event a backend: a plan may have thousands of groups.
void PlanBuilder::tell_compiled() const {
  struct Sum {
    std::size_t groups = 0, nodes = 0;
    double milliseconds = 0;
  };
  std::map<std::string, Sum> by_backend;
  for (const auto& step : plan_->steps_) {
    if (!step->artefact) continue;
    Sum& sum = by_backend[step->artefact->backend().name()];
    ++sum.groups;
    sum.nodes += step->node_count;
    sum.milliseconds += step->artefact->compile_milliseconds();
  }
  for (const auto& [name, sum] : by_backend)
    environment_.events->emit({{"kind", "compile"}, {"phase", "compile"}, {"backend", name}, {"groups", sum.groups}, {"nodes", sum.nodes}, {"milliseconds", sum.milliseconds}});
}

std::uint32_t PlanBuilder::add_value(const ir::Type& type, const std::string& name, Place place) {
  PlanValue value;
  value.name = name;
  value.dtype = type.dtype;
  value.sizes = size_expressions(type.shape);
  if (!is_row_major(type)) value.strides = size_expressions(*type.strides);
  visit_symbols(type, [&](SymbolId s) { value.late = value.late || late_[s.value]; });
  if (type.is_tensor()) value.device = device_of(type);
  value.place = !type.is_tensor() ? Place::nowhere : place == Place::arena && value.late ? Place::late : place;
  value.first_step = static_cast<std::uint32_t>(plan_->steps_.size());
  plan_->values_.push_back(std::move(value));
  return static_cast<std::uint32_t>(plan_->values_.size() - 1);
}

std::uint32_t PlanBuilder::value_of(ValueId v) {
  if (const auto known = values_.find(v); known != values_.end()) return known->second;
  const ir::Value& value = plan_->graph_.open().value(v);
  const auto place = value.kind == ir::ValueKind::input ? Place::input : value.kind == ir::ValueKind::literal ? Place::literal : Place::constant;
  const std::uint32_t made = add_value(plan_->graph_.open().type(v), value.name, place);
  PlanValue& planned = plan_->values_[made];
  if (place == Place::input) planned.index = value.index;
  if (place == Place::literal) planned.literal = value.literal;
  if (place == Place::constant) planned.pointer = plan_->graph_.open().constants()[constant_of(plan_->graph_.open().node(value.node)).value].data;
  if (const auto* dim = std::get_if<ir::Dim>(&value.literal); dim && place == Place::literal && !dim->is_constant())
    dim->for_each_symbol([&](SymbolId s) { planned.late = planned.late || late_[s.value]; });
  return values_[v] = made;
}

namespace {

/// Compiles of parts of one group that may fail before the rest of it is left to the next backend.
constexpr int kMostFailures = 32;

}  // namespace

namespace {

/// For a backend that takes row-major inputs only: others are copied first.
void drop_strides_of_inputs(ir::Graph& group) {
  for (ValueId input : group.inputs())
    if (!is_row_major(group.type(input))) group.set_strides(input, {});
}

}  // namespace

ir::Graph Plan::graph_of(const Step& step) const {
  if (step.group.graph) return step.group.graph->clone();
  const ir::Graph graph = graph_.copy();
  ir::Graph group = GroupCutter(graph).cut(step.group.nodes).graph;
  if (!environment_->backends[step.backend]->has(TENON_STRIDED_INPUTS)) drop_strides_of_inputs(group);
  return group;
}

std::unique_ptr<Step> PlanBuilder::cut_step(const PlannedGroup& planned, GroupCutter& cutter) const {
  auto step = std::make_unique<Step>();
  step->backend = first_backend_ + planned.backend;
  const bool keeps_all = environment_.backends[step->backend]->has(TENON_BAKED_CONSTANTS);
  GroupGraph cut = cutter.cut(planned.nodes, [&](NodeId reader) { return keeps_all || std::ranges::binary_search(planned.constants, reader.value, {}, &NodeId::value); });
  step->group = {std::make_unique<ir::Graph>(std::move(cut.graph)), std::move(cut.nodes), std::move(cut.symbols), std::move(cut.inputs), std::move(cut.outputs)};
  step->node_count = planned.nodes.size();
  if (environment_.backends[step->backend]->has(TENON_STRIDED_INPUTS)) return step;
  drop_strides_of_inputs(*step->group.graph);
  return step;
}

void PlanBuilder::add_group(const PlannedGroup& planned, GroupCutter& cutter) {
  std::vector<Part> parts;
  int failures = 0;
  compile_parts(planned, cutter, failures, parts);
  for (auto part = parts.begin(); part != parts.end();) {
    const auto first = part++;
    if (first->why) {
      for (; part != parts.end() && part->why; ++part) first->planned.nodes.insert(first->planned.nodes.end(), part->planned.nodes.begin(), part->planned.nodes.end());
      first->step = cut_step(first->planned, cutter);
      use_next_backend(*first->step, *first->why);
    }
    add_step(std::move(first->step));
  }
}

// A group that its backend cannot compile is halved until what is to blame stands alone: the rest stays where it was claimed, and
// neighbours that fail go on together.
void PlanBuilder::compile_parts(const PlannedGroup& planned, GroupCutter& cutter, int& failures, std::vector<Part>& parts) {
  auto step = cut_step(planned, cutter);
  auto why = compile(*step);
  if (why) stop_if_cancelled();
  const bool last = step->backend + 1 == environment_.backends.size();
  if (!why || last || planned.nodes.size() == 1 || ++failures >= kMostFailures) {
    parts.push_back({planned, std::move(step), std::move(why)});
    return;
  }
  const auto text = words_of_failure(*step, *why) + "; it is asked for each half";
  environment_.events->emit({{"kind", "compile_split"}, {"phase", "compile"}, {"backend", environment_.backends[step->backend]->name()}, {"nodes", step->node_count}, {"text", text}});
  const auto middle = planned.nodes.begin() + static_cast<std::ptrdiff_t>(planned.nodes.size() / 2);
  compile_parts({{planned.nodes.begin(), middle}, planned.backend, planned.constants}, cutter, failures, parts);
  compile_parts({{middle, planned.nodes.end()}, planned.backend, planned.constants}, cutter, failures, parts);
}

void PlanBuilder::add_step(std::unique_ptr<Step> step) {
  const bool strided = environment_.backends[step->backend]->has(TENON_STRIDED_INPUTS);
  for (ValueId v : step->group.inputs) step->inputs.push_back(strided || is_row_major(plan_->graph_.open().type(v)) ? value_of(v) : row_major_copy(v));
  for (ValueId v : step->group.outputs) {
    step->outputs.push_back(add_value(plan_->graph_.open().type(v), plan_->graph_.open().value(v).name, Place::arena));
    values_[v] = step->outputs.back();
  }
  step->device = device_of(*step);
  bind_symbols(*step);
  const std::vector<ValueId> computed = step->group.outputs;
  plan_->steps_.push_back(std::move(step));
  // What is an output several times is copied at once: behind the last group of a device a copy would keep it from writing over inputs.
  for (ValueId v : computed) add_outputs_of(v);
}

/// A region sees the symbols and constants of the outermost graph: standing alone it gets them, under the same numbers.
ir::Graph PlanBuilder::region_as_graph(const ir::Graph& region) const {
  ir::Graph graph = region.clone();
  for (const ir::SymbolInfo& symbol : plan_->graph_.open().symbols()) graph.add_symbol(symbol);
  for (const ir::Constant& constant : plan_->graph_.open().constants()) graph.add_constant(constant);
  for (ValueId input : graph.inputs()) graph.set_strides(input, {});
  return graph;
}

void PlanBuilder::add_control(NodeId n) {
  const ir::Node& node = plan_->graph_.open().node(n);
  if (node.regions.size() != 2 || node.operands.empty())
    throw Exception(Code::unsupported, fmt::format("no backend takes the op {}, and the host runs branches of two regions only", node.op));
  auto step = std::make_unique<Step>();
  step->kind = Step::Kind::branch;
  step->backend = environment_.backends.size() - 1;
  step->inputs.push_back(on_host(node.operands[0]));
  for (ValueId v : std::span(node.operands).subspan(1)) step->inputs.push_back(is_row_major(plan_->graph_.open().type(v)) ? value_of(v) : row_major_copy(v));
  for (std::size_t s = 0; s < late_.size(); ++s) step->group.symbols.emplace_back(s);
  for (RegionId region : node.regions)
    step->branches.push_back(Plan::compile(plan_->environment_, region_as_graph(plan_->graph_.open().region(region)), first_backend_, expected_sizes_));
  for (ValueId v : node.results) {
    step->outputs.push_back(add_value(plan_->graph_.open().type(v), plan_->graph_.open().value(v).name, Place::arena));
    values_[v] = step->outputs.back();
  }
  for (const auto& branch : step->branches)
    for (std::uint32_t output : branch->output_values())
      if (branch->values()[output].late) throw Exception(Code::unsupported, fmt::format("a result of {} has a size that only one of its branches knows", node.op));
  plan_->steps_.push_back(std::move(step));
}

void PlanBuilder::bind_symbols(Step& step) {
  std::vector<bool> bound(late_.size(), false);
  for (std::size_t o = 0; o < step.group.outputs.size(); ++o) {
    const ir::Shape& shape = plan_->graph_.open().type(step.group.outputs[o]).shape;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      const SymbolId s = shape[d].as_symbol();
      if (!s || !late_[s.value] || bound[s.value]) continue;
      // Bound here only if no input has it already.
      bool known = false;
      for (ValueId v : step.group.inputs) visit_symbols(plan_->graph_.open().type(v), [&](SymbolId t) { known = known || t == s; });
      bound[s.value] = true;
      if (!known) step.bindings.push_back({static_cast<std::uint32_t>(o), static_cast<std::uint32_t>(d), s});
    }
  }
}

std::optional<Error> PlanBuilder::compile(Step& step) {
  stop_if_cancelled();
  BackendInstance& backend = *environment_.backends[step.backend];
  if (!backend.has(TENON_DYNAMIC_SHAPES) && !step.group.symbols.empty()) return {};  // compiled for the sizes of each call
  std::vector<std::uint32_t> origins(step.group.graph->node_capacity(), TENON_NO_NODE);
  for (std::size_t i = 0; i < step.group.nodes.size(); ++i) origins[step.group.graph->nodes()[i].value] = step.group.nodes[i].value;
  if (environment_.progress) environment_.progress->begin_group(backend.name(), step.node_count);
  const ProgressScope telling(environment_.progress);
  ProfiledRange range;
  if (takes_ranges()) range.begin(fmt::format("compile by {}: {} nodes", backend.name(), step.node_count));
  auto made = Artefact::compile(environment_.backends[step.backend], *step.group.graph, environment_.constants, environment_.options, origins);
  if (!made) return made.error();
  step.artefact = *std::move(made);
  backend.counters().nodes += static_cast<std::int64_t>(step.node_count);
  backend.counters().steps += 1;
  return {};
}

std::string PlanBuilder::words_of_failure(const Step& step, const Error& why) const {
  std::string nodes = fmt::format("{} nodes", step.node_count);
  if (step.node_count == 1) {
    const auto computes = std::find_if(step.group.nodes.begin(), step.group.nodes.end(), [&](NodeId n) { return !reads_constant(plan_->graph_.open().node(n)); });
    const ir::Node& node = plan_->graph_.open().node(*computes);
    nodes = fmt::format("1 node ({}{})", node.op, node.location->line ? fmt::format(" of {}:{}", node.location->file, node.location->line) : "");
  }
  return fmt::format("backend '{}' cannot compile {} that it claimed: {}", environment_.backends[step.backend]->name(), nodes, why.message);
}

void PlanBuilder::use_next_backend(Step& step, const Error& why) {
  const std::string& name = environment_.backends[step.backend]->name();
  const std::string text = words_of_failure(step, why);
  environment_.events->emit({{"kind", "compile_failed"}, {"phase", "compile"}, {"backend", name}, {"nodes", step.node_count}, {"code", code_name(why.code)}, {"text", text}});
  if (step.backend + 1 == environment_.backends.size()) throw Failure(why.code, TENON_PHASE_COMPILE, name, text);
  environment_.events->count("compile_failed_nodes", static_cast<std::int64_t>(step.node_count));
  if (!std::exchange(told_failure_, true))
    environment_.events->warn_once("fallbacks", fmt::format("{}; '{}' runs what it leaves", text, environment_.backends[step.backend + 1]->name()));
  std::vector<std::int64_t> sizes;
  for (SymbolId s : step.group.symbols) sizes.push_back(expected_sizes_[s.value]);
  try {
    step.set_detour(Plan::compile(plan_->environment_, step.group.graph->clone(), step.backend + 1, std::move(sizes)));
  } catch (const Exception& nobody) {
    if (nobody.code() != Code::unsupported) throw;
    throw Failure(why.code, TENON_PHASE_COMPILE, name, fmt::format("{}; {}", text, nobody.what()));
  }
}

void PlanBuilder::add_outputs() {
  const std::span<const ir::Output> outputs = plan_->graph_.open().outputs();
  for (std::uint32_t k = 0; k < outputs.size(); ++k) {
    if (outputs[k].kind == ir::OutputKind::update) plan_->updates_.push_back({k, plan_->graph_.open().value(outputs[k].target).index, {}});
    add_outputs_of(outputs[k].value);
  }
}

void PlanBuilder::add_outputs_of(ValueId v) {
  const auto positions = positions_.extract(v);
  if (!positions) return;
  for (std::uint32_t position : positions.mapped()) add_output(position);
}

void PlanBuilder::add_output(std::uint32_t position) {
  const ir::Output& output = plan_->graph_.open().outputs()[position];
  const std::uint32_t computed = value_of(output.value);
  PlanValue& value = plan_->values_[computed];
  const bool free = value.place == Place::arena || value.place == Place::late;
  if (value.place == Place::nowhere) {
    plan_->output_values_[position] = computed;
  } else if (free && is_row_major(plan_->output_types_[position])) {
    value.place = Place::output;
    value.index = position;
    plan_->output_values_[position] = computed;
  } else {
    const std::uint32_t copy = add_value(plan_->output_types_[position], value.name, Place::output);
    plan_->values_[copy].index = position;
    add_copy(computed, copy);
    plan_->output_values_[position] = copy;
  }
}

/// An update may be written over its target by the last step that can fail, if its artefact permits that and no other step reads the target. A copy within
/// a device fails with the device alone.
std::optional<std::uint32_t> PlanBuilder::step_in_place(const Plan::Update& update) const {
  const auto& steps = plan_->steps_;
  const auto stays_there = [&](const Step& step) { return step.device == 0 || plan_->values_[step.inputs[0]].device == plan_->values_[step.outputs[0]].device; };
  std::size_t s = steps.size();
  while (s > 0 && steps[s - 1]->kind == Step::Kind::copy && stays_there(*steps[s - 1])) --s;
  if (s-- == 0 || !steps[s]->artefact || steps[s]->late) return {};
  const auto position_of = [](const std::vector<std::uint32_t>& among, std::uint32_t v) { return static_cast<std::uint32_t>(std::ranges::find(among, v) - among.begin()); };
  const auto output = position_of(steps[s]->outputs, plan_->output_values_[update.output]);
  const auto target = std::ranges::find_if(plan_->values_, [&](const PlanValue& v) { return v.place == Place::input && v.index == update.target; });
  if (output == steps[s]->outputs.size() || target == plan_->values_.end() || target->last_step > s || target->strides) return {};
  const auto input = position_of(steps[s]->inputs, static_cast<std::uint32_t>(target - plan_->values_.begin()));
  if (input == steps[s]->inputs.size() || !steps[s]->artefact->permits_alias(output, input)) return {};
  return static_cast<std::uint32_t>(s);
}

bool PlanBuilder::passes_through() const {
  if (plan_->steps_.size() != 1 || !plan_->updates_.empty() || plan_->devices_.size() > 1) return false;
  const Step& step = *plan_->steps_[0];
  const auto in_order = [&](const std::vector<std::uint32_t>& values, Place place, std::size_t count) {
    if (values.size() != count) return false;
    for (std::uint32_t i = 0; i < count; ++i)
      if (plan_->values_[values[i]].place != place || plan_->values_[values[i]].index != i) return false;
    return true;
  };
  return step.kind == Step::Kind::group && !step.late && in_order(step.inputs, Place::input, plan_->graph_.open().inputs().size()) &&
         in_order(step.outputs, Place::output, plan_->output_types_.size());
}

void PlanBuilder::finish() {
  Plan& plan = *plan_;
  for (std::uint32_t s = 0; s < plan.steps_.size(); ++s) {
    Step& step = *plan.steps_[s];
    step.first_input = plan.table_size_;
    step.first_output = step.first_input + step.inputs.size();
    plan.table_size_ = step.first_output + step.outputs.size();
    step.late = !step.bindings.empty();
    for (SymbolId symbol : step.group.symbols) step.late = step.late || late_[symbol.value];
    const auto touch = [&](std::uint32_t v, std::size_t slot) {
      PlanValue& value = plan.values_[v];
      value.last_step = s;
      step.late = step.late || value.late;
      if (value.place == Place::input) plan.input_patches_.push_back({static_cast<std::uint32_t>(slot), value.index});
      if (value.place == Place::output) plan.output_patches_.push_back({static_cast<std::uint32_t>(slot), value.index});
    };
    for (std::size_t i = 0; i < step.inputs.size(); ++i) touch(step.inputs[i], step.first_input + i);
    for (std::size_t i = 0; i < step.outputs.size(); ++i) touch(step.outputs[i], step.first_output + i);
    step.gives = step.device != 0 && !step.late && step.artefact && step.artefact->gives_outputs();
  }
  if (plan.devices_.size() > 1) find_waits();
  for (Plan::Update& update : plan.updates_)
    if ((update.in_place_by = step_in_place(update))) plan.steps_[*update.in_place_by]->over_inputs = true;
  plan.passes_through_ = passes_through();
  if (plan.conversions_) environment_.events->count("conversions", static_cast<std::int64_t>(plan.conversions_));
  drop_what_only_compiling_needs();
  environment_.live_plans->add(plan_.get());
}

/// Thousands of small plans may be alive. The graph of a group is cut again where its backend fails while it runs.
void PlanBuilder::drop_what_only_compiling_needs() {
  Plan& plan = *plan_;
  ir::Graph& graph = plan.graph_.open();
  plan.symbols_.assign(graph.symbols().begin(), graph.symbols().end());
  std::vector<NodeId> position(graph.node_capacity());  // by NodeId
  for (std::size_t i = 0; i < graph.nodes().size(); ++i) position[graph.nodes()[i].value] = NodeId(i);
  const bool stores = graph.constants().empty();
  for (auto& step : plan.steps_) {
    if (step->kind != Step::Kind::group) continue;
    if (stores)
      for (NodeId& n : step->group.nodes) n = position[n.value];
    if (stores && step->artefact && step->artefact->assumptions().empty()) step->group.graph.reset();
    step->group.inputs = std::vector<ValueId>(), step->group.outputs = std::vector<ValueId>();
  }
  plan.graph_.store();
  plan.values_.shrink_to_fit(), plan.steps_.shrink_to_fit();
}

std::shared_ptr<Plan> Plan::compile(std::shared_ptr<Environment> environment, ir::Graph graph, std::size_t first_backend,
                                    std::vector<std::int64_t> expected_sizes) {
  share_openmp_threads();
  return PlanBuilder(std::move(environment), first_backend, std::move(expected_sizes)).build(std::move(graph));
}

}  // namespace tenon::host
