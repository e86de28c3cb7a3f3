#include "fusion/joint_launch.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "fusion/cost.h"

namespace tenon::codegen {
namespace {

double work_of_run(const Kernel& kernel, const IndexAlgebra& algebra) {
  return algebra.estimate(unit_count(kernel)) * algebra.estimate(points_per_unit(kernel)) * work_per_point(kernel);
}

/// The steps in a new order. Where a value was last written and read says how early a step may run.
class Launches {
 public:
  Launches(Plan& plan, const ir::Graph& graph, const IndexAlgebra& algebra, const PlanOptions& options)
      : plan_(plan), graph_(graph), algebra_(algebra), options_(options), last_use_(graph.value_capacity() + plan.temporaries.size()) {}

  void join() {
    std::vector<Step> steps;
    steps.swap(plan_.steps);
    for (Step& step : steps)
      if (!starts_with_another(step)) add(std::move(step));
  }

 private:
  struct Use {
    std::size_t written_before = 0, read_before = 0;  // steps up to and with the last one that does; 0: none
  };

  void add(Step step) {
    plan_.steps.push_back(std::move(step));
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

  bool starts_with_another(Step& step) {
    auto* kernel = std::get_if<KernelStep>(&step);
    if (!kernel || kernel->kernel.scatter || kernel->nodes.empty()) return false;
    const auto [found, first] = launches_.try_emplace(to_text(kernel->kernel), plan_.steps.size());
    if (first) return false;
    const std::size_t position = found->second;
    found->second = plan_.steps.size();
    const double work = work_of_run(kernel->kernel, algebra_);
    const bool small = worth_joint_launch(work), free = may_run_with(step, position);
    auto& earlier = std::get<KernelStep>(plan_.steps[position]);
    log(*kernel, earlier, small && free ? "" : small ? "it needs what runs in between" : fmt::format("its {:.0f} operations keep the threads busy", work));
    if (!small || !free) return false;
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
  const PlanOptions& options_;
  std::vector<Use> last_use_;                               // by value
  std::unordered_map<std::string, std::size_t> launches_;   // by canonical text: the latest step with that kernel
};

}  // namespace

void join_launches(Plan& plan, const ir::Graph& graph, const IndexAlgebra& algebra, const PlanOptions& options) {
  Launches(plan, graph, algebra, options).join();
}

}  // namespace tenon::codegen
