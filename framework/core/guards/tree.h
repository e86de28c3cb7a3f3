// The guards of one code object, of all its compiled entries, merged into one tree that shares the paths they have in common.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/guards/check.h"

namespace tenon::guards {

using EntryId = Index<struct EntryTag>;
using CheckId = Index<struct CheckTag>;

/// At most that many entries live in one tree.
inline constexpr std::size_t kMaxEntries = 64;

/// A set of entries, one bit each.
using EntryMask = std::uint64_t;

/// One step of the walk. Entries that are still possible start as all of them; a step none of whose entries is possible is skipped.
struct Step {
  enum class Kind : std::uint8_t {
    fetch,  // reach `source` (its parent has been reached); if that fails, none of `entries` is possible any more
    check,  // do `check`; if it fails, none of `entries` is possible any more
  };

  Kind kind = Kind::fetch;
  SourceId source;
  CheckId check;
  EntryMask entries = 0;   // that need this step
  std::uint32_t end = 0;   // fetch: one past the last step below this source. When none of `entries` is possible, go there
};

/// Merges guard lists. A source is fetched once and a check done once, for all entries that need it. The walk is depth-first over
/// the paths; at each source the checks that make others safe come first (exists, type, identity), then the others, then the paths
/// below. The check that failed last, and the path that leads to it, stand first among their like. Checks over several sources come at
/// the end. Not thread-safe.
class GuardTree {
 public:
  GuardTree();
  GuardTree(GuardTree&&) noexcept;
  GuardTree& operator=(GuardTree&&) noexcept;
  ~GuardTree();

  /// The sources that checks refer to.
  SourceTable& sources() { return sources_; }
  const SourceTable& sources() const { return sources_; }

  /// Adds an entry that holds when all checks do, and for which `wanted` sources are to be fetched besides. Throws (unsupported) when
  /// there are kMaxEntries.
  EntryId add(std::vector<Check> checks, std::span<const SourceId> wanted = {});
  /// Forgets an entry; its number is used again. Checks that only it needed go.
  void remove(EntryId entry);
  EntryMask entries() const { return entries_; }

  const Check& check(CheckId id) const;
  /// The checks of one entry, in the order of the walk.
  std::vector<CheckId> checks_of(EntryId entry) const;

  /// The walk, for a frontend to translate. Valid until the tree changes.
  std::vector<Step> program() const;
  /// Notes that a check failed: it and its path move to the front.
  void failed(CheckId check);

 private:
  struct Node;
  Node& node_of(SourceId source);
  CheckId place(std::vector<CheckId>& list, Check check, EntryMask entry);
  void write(const Node& node, std::vector<Step>& steps) const;
  void write_checks(const std::vector<CheckId>& list, std::vector<Step>& steps) const;

  struct Placed {
    Check check;
    EntryMask entries = 0;
  };
  SourceTable sources_;
  std::vector<Placed> checks_;
  std::vector<CheckId> free_;  // numbers of checks that are gone
  std::vector<std::unique_ptr<Node>> nodes_;  // by SourceId
  std::vector<SourceId> roots_;
  std::vector<CheckId> cross_;
  EntryMask entries_ = 0;
};

/// What a walk came to.
struct MatchResult {
  EntryMask possible = 0;          // the entries whose guards all hold
  std::vector<CheckId> failures;  // checks that failed on the way
  std::vector<SourceId> missing;  // sources that could not be reached
};

/// Walks a program, as a frontend's own does, with `probe.fetch(SourceId) -> bool` and `probe.holds(const Check&) -> bool`.
template <class Probe>
MatchResult match(const GuardTree& tree, std::span<const Step> program, Probe&& probe) {
  MatchResult result{tree.entries(), {}, {}};
  for (std::size_t i = 0; i < program.size() && result.possible;) {
    const Step& step = program[i];
    if (!(step.entries & result.possible)) {
      i = step.kind == Step::Kind::fetch ? step.end : i + 1;
      continue;
    }
    ++i;
    if (step.kind == Step::Kind::fetch) {
      if (probe.fetch(step.source)) continue;
      result.missing.push_back(step.source);
    } else {
      if (probe.holds(tree.check(step.check))) continue;
      result.failures.push_back(step.check);
    }
    result.possible &= ~step.entries;
  }
  return result;
}

}  // namespace tenon::guards
