// The frames of a program that has stopped at a graph break: real ones, pushed on the thread's chain, outermost first.
#pragma once

#include <vector>

#include "python/compat/real_frame.h"
#include "python/decode/code.h"
#include "python/segments/break_state.h"

namespace tenon::python {

/// How a chain went on.
enum class Progress : std::uint8_t {
  goes_on,   // the innermost frame has an instruction to run next
  returned,  // the outermost frame has returned
  raised,    // an exception that nobody in the chain handles is set
};

/// Belongs to one call on one thread; needs the GIL. Whatever frames are left when it goes are dropped, and what was being handled before it is
/// being handled again.
class LiveChain {
 public:
  struct Link {
    compat::RealFrame* frame;
    std::shared_ptr<const DecodedCode> code;
    int instruction;  // the innermost: runs next; the others: the call in progress
    Completion completion;
    Ref completion_object;
  };

  LiveChain();
  ~LiveChain();
  LiveChain(const LiveChain&) = delete;
  LiveChain& operator=(const LiveChain&) = delete;

  std::size_t depth() const { return links_.size(); }
  const Link& operator[](std::size_t index) const { return links_[index]; }

  /// Makes the chain what the end of a segment says; `objects` are those that its template has built. False with MemoryError set.
  bool settle(const BreakState& stop, std::vector<Ref> objects);
  /// A segment has run the innermost frames to their ends, at these instructions: their objects say so, if somebody keeps them.
  void show_ends(const std::vector<int>& instructions);
  /// Takes off what is above the outermost `kept` frames: a segment has run them to their ends, or the whole program with 0.
  void end_frames(std::size_t kept);
  /// What lies on top of the innermost frame's stack (borrowed), or null.
  PyObject* top() const;
  /// Where a continuation from here begins.
  ChainStart start() const;
  /// Runs the next instruction for real, and looks for a handler when it raises. One that only CPython's interpreter can run takes the rest of its
  /// frame along. `keyword_names`: what a preceding instruction gave for a call, or
  /// null. `result` is set when the outermost frame has returned.
  Progress step(PyObject* keyword_names, Ref& result);
  /// Takes the exception that is set to its handler, as raised by the next instruction.
  Progress raise_here() { return unwind(true); }
  /// Runs the innermost frame to its end by CPython's interpreter. `result` is set when it was the outermost.
  Progress finish_innermost(Ref& result);

 private:
  Link& innermost() { return links_.back(); }
  void pop();
  Progress leave(Ref value, Ref& result);
  Progress deliver(Completion completion, Ref object, Ref value, Ref& result);
  Progress unwind(bool add_entry);
  Progress finish_in_cpython(Ref& result);
  void show_position(Link& link, compat::Position position);

  std::vector<Link> links_;
  Ref handled_before_;
};

/// The slots of a chain's frames as the values of a call (see ChainStart), and which of them are bound.
struct ChainSlots {
  std::vector<PyObject*> values;  // borrowed
  std::vector<std::uint64_t> bound;  // a bit a slot

  void gather(const LiveChain& chain);
  CallArguments arguments() const { return {values.data(), values.size(), nullptr}; }
};

}  // namespace tenon::python
