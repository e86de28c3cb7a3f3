#include "fusion/joint_launch.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "fusion/lifetimes.h"

namespace tenon::codegen {
namespace {

/// The steps in a new order. Where a value was last written and read says how early a step may run.
class Launches {
 public:
  Launches(Plan& plan, const ir::Graph& graph, const IndexAlgebra& algebra, const Machine& machine, const PlanOptions& options)
      : plan_(plan), graph_(graph), algebra_(algebra), machine_(machine), options_(options), last_use_(graph.value_capacity() + plan.temporaries.size()), lives_(lives_of(plan, graph, algebra)),
        alive_(lives_.alive_at_steps(plan.steps.size())), may_live_(machine.worth_keeping_alive(most_alive_node_by_node(graph, algebra))) {
    for (double bytes : alive_) may_live_ = std::max(may_live_, bytes);
  }

  void join() {
    std::vector<Step> steps;
    steps.swap(plan_.steps);
    for (Step& step : steps) {
      if (!starts_with_another(step)) add(std::move(step));
      ++now_;
    }
  }

 private:
  struct Use {
    std::size_t written_before = 0, read_before = 0;  // steps up to and with the last one that does; 0: none
  };

  void add(Step step) {
    plan_.steps.push_back(std::move(step));
    places_.push_back(now_);
    note(plan_.steps.back(), plan_.steps.size());
  }

  void note(const Step& step, std::size_t end) {
    for (std::size_t v : values_of(step, graph_, true)) last_use_[v].written_before = std::max(last_use_[v].written_before, end);
    for (std::size_t v : values_of(step, graph_, false)) last_use_[v].read_before = std::max(last_use_[v].read_before, end);
  }

  bool may_run_with(const Step& step, std::size_t position) const {
    const auto reads = values_of(step, graph_, false), writes = values_of(step, graph_, true);
    return std::all_of(reads.begin(), reads.end(), [&](std::size_t v) { return last_use_[v].written_before <= position; }) &&
           std::all_of(writes.begin(), writes.end(), [&](std::size_t v) { return std::max(last_use_[v].written_before, last_use_[v].read_before) <= position; });
  }

  /// What the step writes, which would be alive from an earlier place on.
  double bytes_begun_by(const Step& step) const {
    double bytes = 0;
    for (std::size_t v : values_of(step, graph_, true))
      if (lives_.first[v] == now_) bytes += lives_.bytes[v];
    return bytes;
  }

  /// The bytes alive at the steps that would run while the step waits to be used.
  std::span<double> alive_from(std::size_t position) { return std::span(alive_).subspan(places_[position], now_ - places_[position]); }

  bool starts_with_another(Step& step) {
    auto* kernel = std::get_if<KernelStep>(&step);
    if (!kernel || kernel->kernel.scatter || kernel->nodes.empty()) return false;
    const auto [found, first] = launches_.try_emplace(to_text(kernel->kernel), plan_.steps.size());
    if (first) return false;
    const std::size_t position = found->second;
    found->second = plan_.steps.size();
    const double work = estimated_work(algebra_, kernel->kernel);
    const bool small = machine_.worth_joint_launch(work), free = may_run_with(step, position);
    auto& earlier = std::get<KernelStep>(plan_.steps[position]);
    const double begun = bytes_begun_by(step);
    const bool fits = begun + std::ranges::max(alive_from(position)) <= may_live_;
    log(*kernel, earlier, !small ? fmt::format("its {:.0f} operations fill the machine", work) : !free ? "it needs what runs in between" : !fits ? "too much would be alive at once" : "");
    if (!small || !free || !fits) return false;
    for (double& alive : alive_from(position)) alive += begun;
    found->second = position;
    note(step, position + 1);
    earlier.starts.insert(earlier.starts.end(), kernel->starts.begin(), kernel->starts.end());
    earlier.others.push_back(std::move(kernel->buffers));
    earlier.nodes.insert(earlier.nodes.end(), kernel->nodes.begin(), kernel->nodes.end());
    return true;
  }

  void log(const KernelStep& step, const KernelStep& earlier, const std::string& objection) const {
    if (!options_.log) return;
    auto name = [&](NodeId id) { return graph_.node(id).results.empty() ? std::string(graph_.node(id).op) : "%" + graph_.value(graph_.node(id).results[0]).name; };
    options_.log(fmt::format("the kernel of {} {} that of {}, which is equal{}{}", name(step.nodes.back()), objection.empty() ? "starts with" : "does not start with",
                             name(earlier.nodes.back()), objection.empty() ? "" : ": ", objection));
  }

  Plan& plan_;
  const ir::Graph& graph_;
  const IndexAlgebra& algebra_;
  const Machine& machine_;
  const PlanOptions& options_;
  std::vector<Use> last_use_;                               // by value
  Lives lives_;
  std::vector<double> alive_;         // bytes, by step of the plan as it was
  double may_live_;                   // bytes
  std::vector<std::size_t> places_;   // by step: where it was
  std::size_t now_ = 0;               // where the next step was
  std::unordered_map<std::string, std::size_t> launches_;   // by canonical text: the latest step with that kernel
};

}  // namespace

void join_launches(Plan& plan, const ir::Graph& graph, const IndexAlgebra& algebra, const Machine& machine, const PlanOptions& options) {
  Launches(plan, graph, algebra, machine, options).join();
}

}  // namespace tenon::codegen
