// One compiled segment of a function: its guards, its program, and how its results are made.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "python/call/plain_cost.h"
#include "python/call/program/program.h"
#include "python/call/gradients/segment_node.h"
#include "python/call/written_inputs.h"
#include "python/capture/capture.h"
#include "python/compat/real_frame.h"
#include "python/graph/captured_graph.h"
#include "python/graph/error_alarms.h"
#include "python/graph/kept_runs.h"
#include "python/library/float32_rounding.h"
#include "python/library/torch_state.h"

namespace tenon::python {

struct RunFrame;
struct GivenTensor;

/// How one run ended.
enum class RunStatus : std::uint8_t {
  done,
  raised,    // a Python exception is set, and is the program's own
  refused,   // the graph could not run on these values (an index out of range): run the call as plain Python
  unlike,    // a branch goes another way than was assumed; nothing has been written: run the call as plain Python
  warned,    // a floating-point error of which NumPy warns happened; nothing has been written: run the call as plain Python
};

class CapturePoint;

/// An entry of a function's cache. Entries are shared by the cache and the calls that use them, each by an EntryRef.
class CacheEntry {
 public:
  CacheEntry(TorchState state, Segment segment, CapturedGraph captured);
  CacheEntry(const CacheEntry&) = delete;
  CacheEntry& operator=(const CacheEntry&) = delete;

  /// Compiles the graph, if there is anything to run. False with an exception set or an interrupt kept. Throws GraphBreak where a backend written in
  /// Python cannot be told what the graph does.
  bool compile(const Settings& settings, const std::string& name);

  /// Whether the entry holds for this call. Never raises.
  bool matches(const TorchState& state, const CallArguments& call) noexcept {
    return holds_in(state) && segment_.guards.check(call) && (written_inputs_.empty() || written_inputs_stand_apart());
  }

  /// Whether a tensor that it has frozen was written: it will not match again.
  bool outlived() const noexcept;

  /// Whether the limit of recursion allows the frames that it leaves at a break. Where not, plain execution raises where it must.
  bool has_frames_left() const { return !segment_.stop || static_cast<int>(segment_.stop->new_frames()) < compat::frames_left(); }

  /// Runs the entry right after it matched.
  RunStatus run(Built& built);

  /// The result of the call that has just matched, with the given objects in the places of the graph's outputs. Throws PythonError.
  Ref result_with(PyObject* const* outputs);

  const TorchState& state() const { return state_; }
  /// Whether torch's state is as it was at the capture, as far as it concerns the entry.
  bool holds_in(const TorchState& state) const noexcept { return state_ == state && (!on_device_ || rounding_ == float32_rounding()); }
  Segment& segment() { return segment_; }
  const Segment& segment() const { return segment_; }
  const CapturedGraph& captured() const { return captured_; }
  const Program& program() const { return program_; }
  /// Whether NumPy's error handling matters to it.
  bool uses_numpy() const { return uses_numpy_; }
  /// Ops in the graph as captured; without any there is no graph.
  std::size_t op_count() const { return op_count_; }
  const PlainWork& plain() const { return plain_work_; }
  /// Whether it assumes which way branches go.
  bool has_assumptions() const { return !captured_.assumptions.empty(); }
  /// Whether it computes gradients itself.
  bool walks() const { return captured_.walks; }
  /// Whether it has sizes that depend on data.
  bool has_late_sizes() const { return captured_.late_sizes; }
  std::size_t refusals = 0;  // calls whose values stopped it
  bool came_again = false;   // it was used after others of its place
  /// Forgets what only compiling, callers of explain and backends written in Python need.
  void drop_recording() { captured_.recording.reset(); }

  /// The continuations that have followed a break at its end; owned by the function's cache.
  std::vector<CapturePoint*> successors;

  /// Visits every object that is held, for the garbage collector.
  int traverse(visitproc visit, void* arg) const;

 private:
  friend class EntryRef;
  ~CacheEntry() = default;

  bool is_plain() const;
  RunStatus run_plain(Built& built);
  RunStatus run_any(Built& built);
  std::int32_t run_program(const TenonRunArgs& args);
  void find_inputs(RunFrame& frame) const noexcept;
  void find_dropped_gradients();
  void drop_gradients(RunFrame& frame) const noexcept;
  RunStatus run_native(RunFrame& frame);
  RunStatus refused(RunFrame& frame) const;
  /// Whether each tensor begins where torch's kernels take vectors, and draw in their order.
  bool inputs_are_at_vectors(const RunFrame& frame) const noexcept;
  std::optional<Program> compile_for_callable(const Settings& settings, const std::string& name);
  RunStatus run_callable(RunFrame& frame);
  RunStatus take_from_callable(RunFrame& frame, Ref sequence);
  PyObject* result_of_callable(const TensorOutput& output, const GivenTensor& given);
  bool written_inputs_stand_apart() noexcept;
  bool make_outputs(RunFrame& frame);
  void find_postponed_outputs();
  bool is_postponed(const TensorOutput& output) const { return !postponed_.empty() && postponed_[output.index] != kNotPostponed; }
  bool make_output(RunFrame& frame, std::size_t tensor, void*& data) const;
  static void* allocate_output(void* frame, std::uint32_t output, const std::int64_t* sizes, std::size_t rank) noexcept;
  bool make_late_outputs(RunFrame& frame);
  PyObject* new_output(const TensorOutput& output, std::span<const std::int64_t> shape, std::span<const std::int64_t> strides, void*& data) const;
  bool place_updates(RunFrame& frame);
  bool commit_updates(RunFrame& frame);
  bool add_gradients_of(RunFrame& frame);
  bool finish_tensors(RunFrame& frame);
  void make_view(RunFrame& frame, std::size_t tensor) const;

  TorchState state_;
  bool on_device_ = false;    // a part of it
  Float32Rounding rounding_;  // then: as it was at the capture
  Segment segment_;
  CapturedGraph captured_;
  Program program_;
  bool spent_results_ = false;                 // has_spent_results
  RunsOfGraph runs_of_torch_;
  std::shared_ptr<SegmentBackward> backward_;  // null where no result requires grad
  WrittenInputs written_inputs_;
  std::vector<std::uint32_t> input_slots_;   // by graph input: where its object is among the guards' values; 0 for floats of the tape
  std::vector<std::uint32_t> result_slots_;  // of the guards' values that the result is built from; the template is numbered by it
  struct DroppedGradient {
    std::uint32_t of;  // graph inputs
    std::optional<std::uint32_t> gradient;
  };
  std::vector<DroppedGradient> dropped_gradients_;  // that are dropped before the graph runs, so that their memory serves others
  std::size_t op_count_ = 0;
  PlainWork plain_work_;
  std::size_t output_count_ = 0;
  std::size_t symbol_count_ = 0;  // of the graph
  std::size_t users_ = 0;
  bool plain_ = false;         // computes new tensors of known sizes and gives them: nothing else is to be done
  bool runs_ = false;          // the graph has outputs to compute, or may raise or warn
  bool uses_numpy_ = false;
  MetErrors met_errors_;       // of which NumPy may have to warn
  bool may_warn_ = false;      // NumPy may have to warn after a run
  bool takes_scalars_ = false;
  bool release_gil_ = false;   // the plan is long enough
  bool late_outputs_ = false;  // of some the size depends on data
  static constexpr std::uint32_t kNotPostponed = ~std::uint32_t{0};
  std::vector<std::uint32_t> postponed_;  // by graph output: the tensor that is made when the program comes to it; empty where there are none
};

/// Holds an entry, or nothing. Copies count; the GIL must be held. At the end of the last one code of the program may run, by what the entry holds.
class EntryRef {
 public:
  EntryRef() = default;
  EntryRef(std::nullptr_t) {}
  explicit EntryRef(CacheEntry* entry) : entry_(entry) { ++entry->users_; }
  EntryRef(const EntryRef& other) : entry_(other.entry_) {
    if (entry_) ++entry_->users_;
  }
  EntryRef(EntryRef&& other) noexcept : entry_(std::exchange(other.entry_, nullptr)) {}
  EntryRef& operator=(EntryRef other) noexcept {
    std::swap(entry_, other.entry_);
    return *this;
  }
  ~EntryRef() {
    if (entry_ && --entry_->users_ == 0) [[unlikely]] end();
  }

  CacheEntry& operator*() const { return *entry_; }
  CacheEntry* operator->() const { return entry_; }
  explicit operator bool() const { return entry_ != nullptr; }
  friend bool operator==(const EntryRef& a, const EntryRef& b) { return a.entry_ == b.entry_; }

 private:
  void end();  // deletes it

  CacheEntry* entry_ = nullptr;
};

}  // namespace tenon::python
