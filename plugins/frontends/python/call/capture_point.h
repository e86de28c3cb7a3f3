// A place where captures of a function begin: its start, or a continuation after a graph break. Holds the entries compiled there.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "python/call/cache_entry.h"
#include "python/call/turn.h"
#include "python/resume/live_chain.h"
#include "python/segments/drawn_numbers.h"
#include "python/symbols/number_facts.h"

namespace tenon::python {

/// Needs the GIL. Stays where it is as long as its FunctionCache lives.
class CapturePoint {
 public:
  /// The start of the function.
  CapturePoint() = default;
  /// A continuation at the frames of a chain.
  CapturePoint(const LiveChain& chain, const ChainSlots& slots);
  CapturePoint(const CapturePoint&) = delete;
  CapturePoint& operator=(const CapturePoint&) = delete;

  /// Whether a chain is at this continuation: the same instructions of the same code, with the same slots bound.
  bool is_at(const LiveChain& chain, const ChainSlots& slots) const;
  /// Takes numbers of the frames that were drawn for varying, before captures here have found two values.
  void expect_other_numbers(const LiveChain& chain, const DrawnNumbers& drawn);
  static std::size_t hash(const LiveChain& chain);

  /// The entry that holds for these values, or none. The one found comes first from then on.
  EntryRef find(const TorchState& state, const CallArguments& values);
  /// Whether an entry of this place holds for these values.
  bool holds(const EntryRef& entry, const TorchState& state, const CallArguments& values);
  /// Whether a check is under way, below this call or on another thread: it must not be disturbed by another one.
  bool is_checking() const { return checking_; }
  void add(EntryRef entry) {
    uses_numpy_ |= entry->uses_numpy();
    entries_.insert(entries_.begin(), std::move(entry));
  }
  /// Whether NumPy's error handling matters to an entry that has been here.
  bool uses_numpy() const { return uses_numpy_; }
  /// Takes note that an entry could not run on a call's values. One that sizes depending on data, or branches that were assumed, have
  /// stopped over and over goes, and the next capture breaks where they come up. `whole`: no capture may break.
  void note_refusal(const EntryRef& entry, bool whole);
  const std::vector<EntryRef>& entries() const { return entries_; }
  /// Whether what is compiled here takes single elements, and does so little that one more variant is not worth its compilation.
  bool is_of_elements() const;
  /// Whether variants that others have followed are used again, as where a state is drawn from some: more than one.
  bool is_reused() const { return reused_ > 1; }
  /// Takes note that a call comes here. Gives whether it has been here before.
  bool is_here_again(std::uint64_t call) { return std::exchange(last_call_, call) == call; }
  /// Forgets entries whose frozen tensors were written.
  void drop_outlived();
  /// Forgets everything. Gives the entries, at whose end code may run that comes here again.
  std::vector<EntryRef> clear();

  /// Where in the program, for messages: empty for the start of the function.
  std::string describe() const;
  bool is_start() const { return links_.empty(); }
  /// Of the frame that goes on there, where it has a caller that does, too; null where not.
  PyObject* called_code() const { return links_.size() > 1 ? links_.back().code.get() : nullptr; }

  std::size_t failures = 0;     // captures here that left no segment
  std::size_t loud = 0;         // captures here that floating-point errors, which raise or call something, made useless
  std::size_t unlike = 0;       // calls here of which a branch went another way than was assumed
  std::size_t outlived = 0;     // entries dropped because frozen tensors were written
  std::size_t past_limit = 0;   // calls that would have been one variant too many
  bool limit_reported = false;
  bool left_to_python = false;  // compiled, what follows has taken longer than plain execution would
  NumberHistory numbers;        // that captures here have seen
  Turn turn;                    // of the thread that captures here

 private:
  struct Link {
    Ref code;
    int instruction;
    Completion completion;
    int stack_size;
  };
  std::vector<Link> links_;
  std::vector<std::uint64_t> bound_;
  std::vector<EntryRef> entries_;  // most recently used first
  std::uint64_t last_call_ = 0;
  std::size_t reused_ = 0;  // variants
  bool checking_ = false;
  bool uses_numpy_ = false;
};

}  // namespace tenon::python
