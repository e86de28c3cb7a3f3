#include "run/kept_inputs.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "core/ir/outputs.h"
#include "fusion/overwriting.h"

namespace tenon::cuda {

using namespace codegen;

namespace {

/// Bytes up to which a copy costs a kernel nothing that counts.
constexpr std::int64_t kSmall = 64 * 1024;

class KeptInputs {
 public:
  KeptInputs(Plan& plan, const ir::Graph& graph) : plan_(plan), graph_(graph), is_output_(ir::output_values(graph)), last_read_(graph.value_capacity(), 0), writers_(graph.value_capacity(), 0) {
    for (std::size_t s = 0; s < plan.steps.size(); ++s) {
      for (const std::size_t v : values_of(plan.steps[s], graph, false))
        if (v < last_read_.size()) last_read_[v] = s;
      for (const std::size_t v : values_of(plan.steps[s], graph, true))
        if (v < writers_.size()) ++writers_[v];
    }
  }

  void keep() {
    for (std::size_t s = 0; s < plan_.steps.size(); ++s) {
      auto* step = std::get_if<KernelStep>(&plan_.steps[s]);
      if (!step || !step->others.empty() || step->kernel.scatter || step->kernel.reductions.empty() || step->kernel.schedule) continue;
      for (const Overwriting& o : overwritings(*step))
        if (is_worth_it(o, s)) keep(*step, o, s);
    }
  }

 private:
  bool is_worth_it(const Overwriting& o, std::size_t s) const {
    if (o.read.value >= graph_.value_capacity() || o.written.value >= graph_.value_capacity() || last_read_[o.read.value] <= s) return false;
    if (!is_output_[o.written.value] || writers_[o.written.value] != 1 || graph_.value(o.read).kind != ir::ValueKind::input) return false;
    const ir::Type &read = graph_.type(o.read), &written = graph_.type(o.written);
    const ir::Dim count = read.element_count();
    if (read.is_host_scalar() || !(count == written.element_count()) || !count.is_constant() || count.constant() * static_cast<std::int64_t>(size_of(read.dtype)) > kSmall) return false;
    return std::ranges::all_of(plan_.steps.begin() + static_cast<std::ptrdiff_t>(s) + 1, plan_.steps.end(), [&](const Step& later) {
      const auto reads = values_of(later, graph_, false);
      return std::ranges::find(reads, o.read.value) == reads.end() || std::holds_alternative<KernelStep>(later);
    });
  }

  /// The store that writes the value, in its stage.
  static std::optional<std::pair<std::size_t, Store>> store_of(const KernelStep& step, ValueId value) {
    for (std::size_t s = 0; s < step.kernel.stages.size(); ++s)
      for (const Store& store : step.kernel.stages[s].stores)
        if (step.buffers[store.buffer] == value) return std::pair(s, store);
    return {};
  }

  void keep(KernelStep& step, const Overwriting& o, std::size_t s) {
    Kernel& kernel = step.kernel;
    const auto read = static_cast<std::size_t>(std::ranges::find(step.buffers, o.read) - step.buffers.begin());
    const auto store = store_of(step, o.written);
    const auto load = std::ranges::find_if(kernel.operations, [&](const Operation& op) { return op.kind == OperationKind::load && op.payload == read; });
    const bool has_rows = std::ranges::any_of(kernel.buffers, &Buffer::row);  // which come last
    if (!store || load == kernel.operations.end() || load->masked || load->dtype != kernel.buffers[read].dtype || has_rows || kernel.stages[store->first].kind != StageKind::row) return;
    const ValueId kept(static_cast<std::uint32_t>(graph_.value_capacity() + plan_.temporaries.size()));
    plan_.temporaries.push_back({kernel.buffers[read].dtype, graph_.type(o.read).element_count()});
    kernel.stages[store->first].stores.push_back({static_cast<std::uint32_t>(kernel.buffers.size()), load->offset, static_cast<OpId>(load - kernel.operations.begin())});
    kernel.buffers.push_back(kernel.buffers[read]);
    kernel.buffers.back().written = true;
    step.buffers.push_back(kept);
    if (!step.starts.empty()) step.starts.push_back(step.starts[read]);
    for (std::size_t later = s + 1; later < plan_.steps.size(); ++later)
      if (auto* reader = std::get_if<KernelStep>(&plan_.steps[later])) read_instead(*reader, o.read, kept);
    last_read_[o.read.value] = s;
  }

  static void read_instead(KernelStep& reader, ValueId read, ValueId kept) {
    std::ranges::replace(reader.buffers, read, kept);
    for (auto& run : reader.others) std::ranges::replace(run, read, kept);
  }

  Plan& plan_;
  const ir::Graph& graph_;
  const std::vector<bool> is_output_;
  std::vector<std::size_t> last_read_;  // by value, the last step
  std::vector<std::size_t> writers_;    // by value
};

}  // namespace

void keep_inputs(Plan& plan, const ir::Graph& graph) { KeptInputs(plan, graph).keep(); }

}  // namespace tenon::cuda
