#include "host/partition/recomputation.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "core/ir/outputs.h"
#include "core/ops/catalog.h"
#include "core/ops/view.h"
#include "core/rewrite/later_levels.h"
#include "core/rewrite/rewriter.h"
#include "host/partition/placement.h"

namespace tenon::host {
namespace {

constexpr int kDepth = 6;  // nodes in a row that are looked at for one value
/// The least part of the stages that it lies in memory, as a divisor, that a value is spared.
constexpr int kSpared = 4;

class Recomputation {
 public:
  Recomputation(ir::Graph& graph, const Assignment& assignment, std::span<const std::int64_t> sizes)
      : graph_(graph), assignment_(assignment), sizes_(sizes), users_(graph.users()), stage_(graph.node_capacity(), 0), is_output_(ir::output_values(graph)) {
    for (const NodeId n : graph.nodes())
      if (is_on_device(n)) first_ = std::min(first_, backend_of(n));
    find_stages();
  }

  bool run() {
    const std::vector<NodeId> nodes(graph_.nodes().begin(), graph_.nodes().end());
    for (const NodeId n : nodes)
      if (may_run_again(n)) spread(n);
    for (const NodeId n : nodes)
      if (may_run_again(n) && graph_.node(n).op == "reshape") hand_out(n);
    if (handed_out_.empty()) return !again_.empty();
    erase_unread();
    return true;
  }

 private:
  // ---- when nodes run

  std::uint32_t backend_of(NodeId n) const { return assignment_.taken(n) ? assignment_.backend_of[assignment_.group_of[n.value]] : Assignment::kNobody; }
  bool is_result(ValueId v) const { return graph_.value(v).kind == ir::ValueKind::result; }
  NodeId definer(ValueId v) const { return graph_.value(v).node; }

  /// A group of one backend waits for what another gives; a node comes no sooner than its group must, and as late as its readers where that keeps less.
  void find_stages() {
    const auto nodes = graph_.nodes();
    for (const NodeId n : nodes)
      for (const ValueId v : graph_.node(n).operands)
        if (is_result(v)) stage_[n.value] = std::max(stage_[n.value], stage_[definer(v).value] + (backend_of(definer(v)) != backend_of(n) ? 1 : 0));
    until_ = rewrite::delay_nodes(graph_, stage_, {[this](NodeId n) { return may_wait(n); }, [this](ValueId v) { return bytes_of(v); }});
  }

  /// The first backend that has nodes of devices makes groups of them; others take what it leaves, one by one.
  bool may_wait(NodeId n) const { return is_on_device(n) && assignment_.taken(n) && backend_of(n) == first_; }

  // ---- what costs what

  bool is_on_device(NodeId n) const {
    const ir::Node& node = graph_.node(n);
    return node.results.size() == 1 && graph_.type(node.results[0]).is_tensor() && !graph_.type(node.results[0]).device.is_host();
  }

  bool may_run_again(NodeId n) const {
    const ir::Node& node = graph_.node(n);
    if (n.value >= stage_.size() || !may_wait(n) || is_output_[node.results[0].value]) return false;
    const ops::Op* op = ops::find_op(node.op);
    if (!op || !node.regions.empty() || !rewrite::is_pure(graph_, node) || rewrite::may_raise(node)) return false;
    return op->body || op->traits.creates || ops::is_view(graph_, n);
  }

  std::int64_t bytes_of(ValueId v) const { return expected_bytes(graph_, v, sizes_); }

  /// Whether a value is in memory at a stage whatever becomes of this.
  bool is_held(ValueId v, int stage) const { return !is_result(v) || is_output_[v.value] || until_[v.value] >= stage || bytes_of(v) <= rewrite::kNegligibleBytes; }

  /// Bytes and stages that it takes to have a value at a stage.
  std::int64_t price(ValueId v, int stage, int depth) const {
    if (is_held(v, stage)) return 0;
    const std::int64_t kept = bytes_of(v) * (stage - until_[v.value]);
    return depth > 0 && may_run_again(definer(v)) ? std::min(kept, price_of_operands(definer(v), stage, depth - 1)) : kept;
  }

  std::int64_t price_of_operands(NodeId n, int stage, int depth) const {
    std::int64_t price = 0;
    for (const ValueId v : graph_.node(n).operands) price += this->price(v, stage, depth);
    return price;
  }

  /// Whether as many bytes are read for it as were written and read.
  bool reads_little(NodeId n) const {
    std::int64_t read = 0;
    for (const ValueId v : graph_.node(n).operands) read += bytes_of(v);
    return read <= 2 * bytes_of(graph_.node(n).results[0]);
  }

  // ---- what is computed again

  void spread(NodeId n) {
    const ValueId v = graph_.node(n).results[0];
    int here = stage_[n.value], last = here;  // where it is in memory for others' sake; where it is read
    for (const NodeId user : users_[v.value]) {
      last = std::max(last, stage_[user.value]);
      if (backend_of(user) != backend_of(n)) here = std::max(here, stage_[user.value]);
    }
    if (kSpared * (last - here) < last - stage_[n.value] || last == here || bytes_of(v) <= rewrite::kNegligibleBytes || !reads_little(n)) return;
    if (price_of_operands(n, last, kDepth) >= bytes_of(v) * (last - here)) return;
    for (const NodeId user : users_[v.value])
      if (stage_[user.value] > here) std::ranges::replace(graph_.mutable_node(user).operands, v, again(v, stage_[user.value]));
    until_[v.value] = here;
  }

  /// The value, computed a second time for a stage.
  ValueId again(ValueId v, int stage) {
    if (const auto known = again_.find({v.value, stage}); known != again_.end()) return known->second;
    const NodeId original = definer(v);
    std::vector<ValueId> operands = graph_.node(original).operands;
    for (ValueId& operand : operands) {
      const std::int64_t kept = bytes_of(operand) * (stage - until_[operand.value]);
      if (!is_held(operand, stage) && price(operand, stage, kDepth) < kept) operand = again(operand, stage);
      else until_[operand.value] = std::max(until_[operand.value], stage);
    }
    const ir::Node node = graph_.node(original);
    const auto place = std::ranges::find(graph_.nodes(), original) + 1;
    const std::optional<NodeId> next = place == graph_.nodes().end() ? std::nullopt : std::optional(*place);
    const NodeId made = graph_.add_node(node.op, std::move(operands), node.attributes, {graph_.type(v)}, node.location, {}, next);
    const ValueId result = graph_.node(made).results[0];
    until_.resize(graph_.value_capacity(), stage), is_output_.resize(graph_.value_capacity(), false);
    return again_[{v.value, stage}] = result;
  }

  // ---- what readers take as views of their own

  /// Whether a value is in memory behind the group of a node that reads it, whatever becomes of that.
  bool outlasts(ValueId v, NodeId n) const {
    const auto is_elsewhere = [&](NodeId user) { return user != n && (backend_of(user) != backend_of(n) || stage_[user.value] > stage_[n.value]); };
    return !is_result(v) || is_output_[v.value] || std::ranges::any_of(users_[v.value], is_elsewhere);
  }

  /// Whether the host itself runs it, which takes no views.
  bool is_hosts(NodeId n) const { return !graph_.node(n).regions.empty() || copies_between_devices(graph_, graph_.node(n)); }

  /// Readers of other backends each get a reshape of what is in memory anyway as their own, which takes none; it would lie there a second time.
  void hand_out(NodeId n) {
    const ir::Node node = graph_.node(n);
    const ValueId v = node.results[0];
    if (bytes_of(v) <= rewrite::kNegligibleBytes || !outlasts(node.operands[0], n)) return;
    for (const NodeId user : users_[v.value]) {
      if (backend_of(user) == backend_of(n) || is_hosts(user) || std::ranges::find(graph_.node(user).operands, v) == graph_.node(user).operands.end()) continue;
      const NodeId made = graph_.add_node(node.op, node.operands, node.attributes, {graph_.type(v)}, node.location, {}, user);
      std::ranges::replace(graph_.mutable_node(user).operands, v, graph_.node(made).results[0]);
      handed_out_.push_back(n);
    }
  }

  void erase_unread() {
    const auto users = graph_.users();
    std::erase_if(handed_out_, [&](NodeId n) { return !users[graph_.node(n).results[0].value].empty(); });
    graph_.erase_nodes(handed_out_);
  }

  ir::Graph& graph_;
  const Assignment& assignment_;
  std::span<const std::int64_t> sizes_;
  std::vector<std::vector<NodeId>> users_;  // by ValueId, of the graph as it was
  std::vector<int> stage_;                  // by NodeId
  std::vector<int> until_;                  // by ValueId: the last stage that reads it
  std::vector<bool> is_output_;             // by ValueId
  std::uint32_t first_ = Assignment::kNobody;
  std::map<std::pair<std::uint32_t, int>, ValueId> again_;
  std::vector<NodeId> handed_out_;
};

}  // namespace

bool compute_again_in_later_groups(ir::Graph& graph, const Assignment& assignment, std::span<const std::int64_t> sizes) { return Recomputation(graph, assignment, sizes).run(); }

}  // namespace tenon::host
