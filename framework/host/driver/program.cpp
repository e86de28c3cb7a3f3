#include "host/driver/program.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "core/abi/struct_size.h"
#include "core/ir/buffer.h"
#include "core/ir/printer.h"
#include "core/ops/check/type_checker.h"
#include "host/config/given_names.h"
#include "host/diagnostics/profiling.h"
#include "host/diagnostics/progress.h"
#include "host/plugins/contact/cancellation.h"

using nlohmann::json;

namespace tenon::host {
namespace {

json options_of(const char* text) {
  if (!text || !*text) return json::object();
  json options = json::parse(text, nullptr, false);
  TENON_USER_CHECK(options.is_object(), "the options of a compile must be a JSON object; given: {}", text);
  return options;
}

/// Reads a submitted graph; its constants stay where they are.
ir::Graph graph_of(const TenonGraph& submitted) {
  ir::Graph graph = ir::read_buffer(submitted.buffer, {submitted.constants, submitted.constant_count}).value();
  for (NodeId n : graph.nodes())
    if (reads_constant(graph.node(n))) {
      const ir::Constant& constant = graph.constants()[constant_of(graph.node(n)).value];
      const bool empty = std::any_of(constant.type.shape.begin(), constant.type.shape.end(), [](const ir::Dim& d) { return d == ir::Dim(0); });
      TENON_USER_CHECK(constant.data || empty, "the graph reads constant @{}, and its bytes were not given", constant.name);
    }
  return graph;
}

/// The caller's expectations, for the symbols that have their names.
void take_hints(ir::Graph& graph, const json& options) {
  const auto given = options.find("sizes");
  if (given == options.end()) return;
  TENON_USER_CHECK(given->is_object(), "options.sizes must be an object of symbols and their sizes; given: {}", given->dump());
  for (std::uint32_t s = 0; s < graph.symbols().size(); ++s) {
    ir::SymbolInfo& symbol = graph.mutable_symbol(SymbolId(s));
    if (!given->contains(symbol.name)) continue;
    TENON_USER_CHECK((*given)[symbol.name].is_number_integer(), "options.sizes.{} must be an integer", symbol.name);
    // A number below 0 is no size: -1 and less would not travel as a hint.
    symbol.hint = std::max<std::int64_t>(std::clamp((*given)[symbol.name].get<std::int64_t>(), symbol.min, std::max(symbol.min, symbol.max)), -1);
  }
}

/// What to tell backends without dynamic shapes before the first call: the hint, else something that is not special.
std::vector<std::int64_t> expected_sizes(const ir::Graph& graph) {
  std::vector<std::int64_t> sizes;
  for (const ir::SymbolInfo& symbol : graph.symbols()) {
    const std::int64_t unspecial = 7 + 2 * static_cast<std::int64_t>(sizes.size());
    sizes.push_back(symbol.hint >= 0 ? symbol.hint : std::clamp(unspecial, symbol.min, std::max(symbol.min, symbol.max)));
  }
  return sizes;
}

std::shared_ptr<Environment> environment_for(const std::shared_ptr<Session>& session, const TenonCompileRequest& request, const json& options) {
  auto environment = std::make_shared<Environment>();
  environment->session = session;
  environment->events = &session->events;
  environment->live_plans = &session->live_plans;
  environment->devices = &session->devices;
  const bool names_own = TENON_COVERS(&request, own_backend_count);
  environment->backends = session->backends(given_names(request.backends, request.backend_count, "backends"),
                                            names_own ? given_names(request.own_backends, request.own_backend_count, "backends of the driver") : std::vector<std::string>(), options);
  environment->options = options.dump();
  environment->artefact_limit = static_cast<std::size_t>(std::max(1, session->config.artefact_limit));
  environment->profile = session->config.profile;
  environment->check = session->config.check_plugins;
  return environment;
}

}  // namespace
}  // namespace tenon::host

using namespace tenon::host;

TenonProgram::TenonProgram(std::shared_ptr<Session> session, const TenonCompileRequest& request) {
  const auto start = std::chrono::steady_clock::now();
  const ProfiledRange range("compile");
  const bool may_cancel = TENON_COVERS(&request, cancel_context);
  const CancelScope cancelling(may_cancel ? request.cancelled : nullptr, may_cancel ? request.cancel_context : nullptr);
  const json options = options_of(request.options);
  environment_ = environment_for(session, request, options);
  tenon::ir::Graph graph = graph_of(request.graph);
  take_hints(graph, options);
  std::vector<tenon::ir::Dim> not_negative = tenon::ops::accept_graph(graph).value();
  Progress progress(session->config.progress, graph.nodes().size());
  const std::vector<std::string> pipeline = request.pipeline ? given_names(request.pipeline, request.pipeline_count, "passes") : session->config.pipeline;
  PipelineResult passed = PassManager(session->registry, session->events, session->config).run(std::move(graph), pipeline);
  not_negative.insert(not_negative.end(), passed.not_negative.begin(), passed.not_negative.end());
  passes_ = std::move(passed.records);
  passes_.shrink_to_fit();
  constants_ = std::move(passed.constants);
  std::vector<std::int64_t> sizes = expected_sizes(passed.graph);
  takes_inputs_ = !passed.graph.inputs().empty();
  gives_outputs_ = !passed.graph.outputs().empty();
  environment_->progress = &progress;
  plan_ = Plan::compile(environment_, std::move(passed.graph), 0, std::move(sizes));
  environment_->progress = nullptr;
  takes_symbols_ = !plan_->symbols().empty();
  plan_->expect_not_negative(std::move(not_negative));

  for (const tenon::ir::Type& type : plan_->output_types())
    for (const tenon::ir::Dim& dim : type.shape) {
      bool late = false;
      if (!dim.is_constant()) dim.for_each_symbol([&](tenon::SymbolId s) { late = late || plan_->is_late(s); });
      output_sizes_.emplace_back(dim);
      output_size_late_.push_back(late);
    }
  compile_milliseconds_ = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  release_constants_ = request.release_constants;
  context_ = request.context;
}

TenonProgram::~TenonProgram() {
  plan_.reset();
  environment_.reset();
  if (release_constants_) release_constants_(context_);
}

void TenonProgram::bind(const std::int64_t* symbols, std::int64_t* sizes) const {
  TENON_USER_CHECK(symbols || plan_->symbols().empty(), "the values of the symbols are null");
  TENON_USER_CHECK(sizes || output_sizes_.empty(), "the place for the sizes is null");
  const std::span<const std::int64_t> values(symbols, plan_->symbols().size());
  plan_->require_sizes(symbols);
  for (std::size_t i = 0; i < output_sizes_.size(); ++i) sizes[i] = output_size_late_[i] ? -1 : output_sizes_[i].evaluate(values);
}

void TenonProgram::refuse_lists(const TenonRunArgs& args) const {
  TENON_USER_CHECK(args.inputs || !takes_inputs_, "the list of inputs is null");
  TENON_USER_CHECK(args.outputs || !gives_outputs_, "the list of outputs is null");
  TENON_USER_CHECK(args.symbols || !takes_symbols_, "the values of the symbols are null");
}

json TenonProgram::query(const std::string& what) const {
  if (what == "plan") return describe_plan();
  if (what == "passes") return to_json(passes_);
  if (what == "graph") return tenon::ir::print_graph(plan_->graph());
  throw tenon::Exception(tenon::Code::not_found, fmt::format("nothing is known of a program as '{}'; ask for plan, passes or graph", what));
}

static json describe_steps(const Plan& plan);

static json describe_group(const Plan& plan, const Step& step) {
  std::map<std::string, int> ops;
  for (tenon::NodeId n : step.group.nodes)
    if (!reads_constant(plan.graph().node(n))) ++ops[plan.graph().node(n).op];
  json described = {{"kind", "group"}, {"backend", plan.environment().backends[step.backend]->name()}, {"nodes", step.node_count}, {"ops", ops}};
  described["compile_ms"] = step.artefact ? step.artefact->compile_milliseconds() : 0.0;
  return described;
}

/// The steps that run in the place of a group: of the plan that took over, or of the one that was made for the sizes of the last call.
/// Each says in whose place it runs.
static json describe_instead(const Plan& plan, const Step& step) {
  const std::string& claimed_by = plan.environment().backends[step.backend]->name();
  const auto detour = step.detour();
  const auto sized = detour ? nullptr : step.plans_by_size.latest();
  json steps = detour ? describe_steps(*detour) : sized ? describe_steps(*sized) : json::array({describe_group(plan, step)});
  for (json& other : steps) {
    if (!detour) other["by_size"] = true;
    else if (!other.contains("instead_of")) other["instead_of"] = claimed_by;
  }
  return steps;
}

static json describe_steps(const Plan& plan) {
  json steps = json::array();
  for (const auto& step : plan.steps()) {
    if (step->kind == Step::Kind::copy) {
      steps.push_back({{"kind", "copy"}, {"value", plan.values()[step->outputs[0]].name}});
    } else if (step->kind == Step::Kind::branch) {
      json branches = json::array();
      for (const auto& branch : step->branches) branches.push_back(describe_steps(*branch));
      steps.push_back({{"kind", "branch"}, {"branches", branches}});
    } else if (step->has_detour() || !step->artefact) {
      for (json& instead : describe_instead(plan, *step)) steps.push_back(std::move(instead));
    } else {
      steps.push_back(describe_group(plan, *step));
    }
  }
  return steps;
}

json TenonProgram::describe_plan() const {
  const json steps = describe_steps(*plan_);
  const Plan::ArenaSizes arena = plan_->arena_sizes();
  const PeakMemory peak = plan_->peak_memory();
  return {{"steps", steps}, {"conversions", plan_->conversions()}, {"compile_ms", compile_milliseconds_},
          {"arena", {{"bytes", arena.planned}, {"lower_bound", arena.lower_bound}, {"unshared", arena.unshared}}},
          {"memory", {{"peak_bytes", peak.planned}, {"unfused_peak_bytes", peak.unfused}}}};
}
