// Calls: what the callable is decides who runs it.
#pragma once

#include <optional>
#include <set>
#include <unordered_map>
#include <vector>

#include "python/guards/recorder.h"
#include "python/heap/heap.h"
#include "python/segments/arguments.h"
#include "python/segments/frame.h"

namespace tenon::python {

class Evaluator;

/// Asks attributes, cached_calls, classes, dropped, functions, hidden_calls, iteration, loops.
class Calls {
 public:
  Calls(Evaluator& core, Heap& heap, Recorder& recorder) : core_(core), heap_(heap), recorder_(recorder) {}

  /// Calls; empty when a frame was pushed whose result comes later, by its completion.
  std::optional<Ref> call(PyObject* callable, Arguments arguments, Completion completion = Completion::push);
  /// Runs C code for real. The arguments must have been exposed as far as it reads them.
  Ref call_real(PyObject* callable, const Arguments& arguments);
  /// Lets the recorder record the call.
  Ref call_recorder(PyObject* callable, const Arguments& arguments);
  /// Records a call of a function in C that the recorder takes, or what the call does, where that can be differentiated.
  Ref record(PyObject* callable, const Arguments& arguments);
  /// Does so where the recorder has a function for the call that can be differentiated; none where it has none.
  std::optional<Ref> record_differentiable(PyObject* callable, const Arguments& arguments);
  void op_call(Frame& f, int count, Ref names);
  void op_call_function_ex(Frame& f, const Instruction& i);
  /// The library's own argument parser takes a symbolic int for an unknown object: the recorder gets the call past it.
  std::optional<Ref> call_stand_in_with_numbers(PyObject* self, PyObject* name, const Arguments& arguments);
  /// A method in C of a stand-in, as it is bound, and the descriptor that it comes from, if that is known.
  Ref call_method_of_stand_in(PyObject* bound, PyObject* method, const Arguments& arguments);
  bool recorder_takes(PyObject* callable);
  /// How many calls were handed to the recorder.
  std::size_t recorded() const { return recorded_; }

 private:
  void require_no_method_of_name(PyObject* callable, PyObject* value);
  Ref record_by_library(PyObject* callable, const Arguments& arguments, bool tried);
  bool is_held(PyObject* object) const;
  bool is_held_by_older(PyObject* object) const;
  /// A method, and the types and names of what it is given: whether the library's parser takes a call depends on these alone.
  using Signature = std::vector<PyObject*>;
  Signature signature_of(PyObject* bound, PyObject* method, const Arguments& arguments);

  Evaluator& core_;
  Heap& heap_;
  Recorder& recorder_;
  std::unordered_map<PyObject*, bool> takes_;  // by callable: whether the recorder takes its calls
  std::set<Signature> accepted_;         // of calls of methods of torch's tensors
  std::vector<Ref> accepted_names_;      // keeps the names in these
  std::size_t recorded_ = 0;
};

}  // namespace tenon::python
