#include "core/guards/tree.h"

#include <algorithm>
#include <bit>

#include "core/base/error.h"

namespace tenon::guards {

/// One source of the tree.
struct GuardTree::Node {
  EntryMask entries = 0;           // that need the source
  std::vector<CheckId> safety;     // exists, type, identity
  std::vector<CheckId> checks;     // the others, the one that failed last first
  std::vector<SourceId> children;  // likewise
};

GuardTree::GuardTree() = default;
GuardTree::GuardTree(GuardTree&&) noexcept = default;
GuardTree& GuardTree::operator=(GuardTree&&) noexcept = default;
GuardTree::~GuardTree() = default;

namespace {

template <class T>
void move_to_front(std::vector<T>& list, T item) {
  const auto i = std::find(list.begin(), list.end(), item);
  if (i != list.end()) std::rotate(list.begin(), i, i + 1);
}

bool is_safety(CheckKind kind) { return kind <= CheckKind::identity; }

}  // namespace

GuardTree::Node& GuardTree::node_of(SourceId source) {
  if (nodes_.size() < sources_.size()) nodes_.resize(sources_.size());
  std::unique_ptr<Node>& node = nodes_[source.value];
  if (node) return *node;
  node = std::make_unique<Node>();
  Node& made = *node;
  const SourceId parent = sources_[source].parent;
  (parent ? node_of(parent).children : roots_).push_back(source);
  return made;
}

CheckId GuardTree::place(std::vector<CheckId>& list, Check check, EntryMask entry) {
  for (CheckId id : list) {
    if (!(checks_[id.value].check == check)) continue;
    checks_[id.value].entries |= entry;
    return id;
  }
  CheckId id(checks_.size());
  if (free_.empty()) {
    checks_.push_back({std::move(check), entry});
  } else {
    id = free_.back();
    free_.pop_back();
    checks_[id.value] = {std::move(check), entry};
  }
  list.push_back(id);
  return id;
}

EntryId GuardTree::add(std::vector<Check> checks, std::span<const SourceId> wanted) {
  if (entries_ == ~EntryMask{0}) throw Exception(Code::unsupported, fmt::format("a guard tree holds {} entries, no more", kMaxEntries));
  const EntryId id(static_cast<std::size_t>(std::countr_one(entries_)));
  const EntryMask entry = EntryMask{1} << id.value;
  const auto need = [&](SourceId source) {
    TENON_CHECK(source.value < sources_.size(), "source {} of a check does not exist", source.value);
    for (SourceId s = source; s; s = sources_[s].parent) node_of(s).entries |= entry;
  };
  for (SourceId s : wanted) need(s);
  for (Check& c : checks) {
    if (c.source) need(c.source);
    for (SourceId s : c.others) need(s);
    TENON_CHECK(c.source || c.is_cross(), "a check without a source");
    if (c.is_cross()) {
      place(cross_, std::move(c), entry);
      continue;
    }
    Node& node = node_of(c.source);
    place(is_safety(c.kind) ? node.safety : node.checks, std::move(c), entry);
  }
  entries_ |= entry;
  return id;
}

void GuardTree::remove(EntryId entry) {
  const EntryMask keep = ~(EntryMask{1} << entry.value);
  entries_ &= keep;
  for (std::size_t i = 0; i < checks_.size(); ++i) {
    Placed& p = checks_[i];
    if (p.entries == (EntryMask{1} << entry.value)) free_.emplace_back(i);
    p.entries &= keep;
  }
  const auto unneeded = [&](CheckId c) { return checks_[c.value].entries == 0; };
  std::erase_if(cross_, unneeded);
  for (std::unique_ptr<Node>& node : nodes_) {
    if (!node) continue;
    node->entries &= keep;
    std::erase_if(node->safety, unneeded);
    std::erase_if(node->checks, unneeded);
  }
  const auto idle = [&](SourceId s) { return nodes_[s.value]->entries == 0; };
  std::erase_if(roots_, idle);
  for (std::unique_ptr<Node>& node : nodes_)
    if (node) std::erase_if(node->children, idle);
  for (std::unique_ptr<Node>& node : nodes_)
    if (node && node->entries == 0) node.reset();
}

const Check& GuardTree::check(CheckId id) const { return checks_[id.value].check; }

std::vector<CheckId> GuardTree::checks_of(EntryId entry) const {
  std::vector<CheckId> list;
  for (const Step& s : program())
    if (s.kind == Step::Kind::check && s.entries >> entry.value & 1) list.push_back(s.check);
  return list;
}

void GuardTree::write_checks(const std::vector<CheckId>& list, std::vector<Step>& steps) const {
  for (CheckId c : list) steps.push_back({Step::Kind::check, checks_[c.value].check.source, c, checks_[c.value].entries, 0});
}

void GuardTree::write(const Node& node, std::vector<Step>& steps) const {
  write_checks(node.safety, steps);
  write_checks(node.checks, steps);
  for (SourceId child : node.children) {
    const std::size_t fetch = steps.size();
    const Node& below = *nodes_[child.value];
    steps.push_back({Step::Kind::fetch, child, {}, below.entries, 0});
    write(below, steps);
    steps[fetch].end = static_cast<std::uint32_t>(steps.size());
  }
}

std::vector<Step> GuardTree::program() const {
  std::vector<Step> steps;
  Node top;
  top.children = roots_;
  write(top, steps);
  write_checks(cross_, steps);
  return steps;
}

void GuardTree::failed(CheckId id) {
  const Check& check = checks_[id.value].check;
  if (check.is_cross()) return move_to_front(cross_, id);
  Node& node = *nodes_[check.source.value];
  move_to_front(is_safety(check.kind) ? node.safety : node.checks, id);
  for (SourceId s = check.source; s; s = sources_[s].parent) {
    const SourceId parent = sources_[s].parent;
    move_to_front(parent ? nodes_[parent.value]->children : roots_, s);
  }
}

}  // namespace tenon::guards
