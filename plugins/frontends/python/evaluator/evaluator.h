// The evaluator: runs bytecode over real Python objects, with stand-ins for tensors. One object a capture.
#pragma once

#include <limits>
#include <optional>
#include <span>
#include <unordered_set>

#include "python/compat/object_layout.h"
#include "python/evaluator/capture.h"
#include "python/evaluator/generator.h"
#include "python/evaluator/unrolled_loops.h"
#include "python/evaluator/warning_state.h"
#include "python/heap/last_references.h"
#include "python/heap/snapshot.h"
#include "python/objects/imported.h"

namespace tenon::python {

/// The arguments of a call: positional ones, then those given by name.
struct Arguments {
  std::vector<Ref> values;
  Ref names;  // tuple of str, or empty

  std::size_t named() const { return names ? static_cast<std::size_t>(PyTuple_GET_SIZE(names.get())) : 0; }
  std::size_t positional() const { return values.size() - named(); }
  PyObject* operator[](std::size_t index) const { return values[index].get(); }
};

/// Thrown where a signal's handler has raised something (compat::take_interrupt): the run is given up. No C code is between thrower and capture.
struct Interrupted {};

/// Families of opcodes are member functions in files of their own: names.cpp, attributes.cpp, items.cpp, operators.cpp, building.cpp,
/// iteration.cpp, calls.cpp, construction.cpp, functions.cpp, exceptions.cpp, generator.cpp; run.cpp holds the loop.
/// A member that needs user code run first runs it to its end in a nested loop, except a plain call, which pushes a frame.
class Evaluator {
 public:
  Evaluator(Recorder& recorder, Heap& heap, const CaptureOptions& options) : recorder_(recorder), heap_(heap), options_(options) {
    recorder_.before_it_may_warn = [this](const std::string& function) { require_warnings_in_order(function); };
  }

  Heap& heap() { return heap_; }
  Recorder& recorder() { return recorder_; }
  const CaptureOptions& options() const { return options_; }
  const std::vector<std::unique_ptr<Frame>>& frames() const { return frames_; }
  Frame& frame() { return *frames_.back(); }
  /// A local variable of a frame, borrowed, which is guarded then; null where it is unbound.
  PyObject* local(Frame& f, int index) {
    Slot& slot = f.locals[index];
    if (slot.pending) slot = {heap_.enter(slot.pending, slot.object.get()), {}};
    return slot.object.get();
  }
  std::size_t instructions() const { return instructions_; }
  /// The last instructions of those frames that were there at the beginning and have ended, innermost first.
  const std::vector<int>& ends() const { return ends_; }

  // ---- run.cpp
  /// Runs until the frame at depth `base` has returned, and gives its result. Throws StopHere before the instruction that the options name.
  Ref run(std::size_t base);
  /// Calls and runs to the end.
  Ref call_now(PyObject* callable, Arguments arguments);
  Ref call_now(PyObject* callable, std::initializer_list<PyObject*> arguments);

  // ---- calls.cpp
  /// Calls; empty when a frame was pushed whose result comes later, by its completion.
  std::optional<Ref> call(PyObject* callable, Arguments arguments, Completion completion = Completion::push);
  /// Runs C code for real. The arguments must have been exposed as far as it reads them.
  Ref call_real(PyObject* callable, const Arguments& arguments);
  /// Lets the recorder record the call.
  Ref call_recorder(PyObject* callable, const Arguments& arguments);
  void mark_position();

  // ---- attributes.cpp
  Ref load_attribute(PyObject* owner, PyObject* name);
  /// Empty instead of an AttributeError.
  std::optional<Ref> find_attribute(PyObject* owner, PyObject* name);
  /// A special method that the class of `owner` was found to have, bound to it, whatever kind of descriptor it is.
  Ref bind_special(PyObject* found, PyObject* owner, PyObject* name);
  /// object.__getattribute__(owner, name), which a `__getattribute__` written in Python falls back to.
  Ref generic_attribute(PyObject* owner, PyObject* name);
  void store_attribute(PyObject* owner, PyObject* name, PyObject* value);
  void delete_attribute(PyObject* owner, PyObject* name);
  void generic_delete_attribute(PyObject* owner, PyObject* name);
  void generic_store_attribute(PyObject* owner, PyObject* name, PyObject* value);

  // ---- items.cpp
  Ref load_item(PyObject* container, PyObject* key);
  void store_item(PyObject* container, PyObject* key, PyObject* value);
  bool contains(PyObject* container, PyObject* item);
  /// What C code would get by an `__index__` written in Python, of an object or of the parts of a slice; anything else as it is.
  Ref plain_index(PyObject* key);

  // ---- operators.cpp
  bool truth(PyObject* value);
  Ref binary(int operation, PyObject* left, PyObject* right);
  Ref compare(int operation, PyObject* left, PyObject* right);
  bool is_same(Ref left, Ref right);
  Py_ssize_t length(PyObject* value);
  Ref to_string(PyObject* value, PyObject* method_name);
  /// The text that a function of a module makes of numbers which vary; empty where there are none, or it cannot be made later.
  Ref late_text(const char* module, const char* function, std::initializer_list<PyObject*> arguments);
  bool is_formatted_by_library(PyObject* tensor);
  Ref formatted(PyObject* value, PyObject* spec);

  // ---- equality.cpp
  /// Whether comparing the object, or what it holds, runs an `__eq__` written in Python.
  bool has_python_equality(PyObject* value, int depth = 0);
  bool has_python_hash(PyObject* value);
  bool has_python_keys(PyObject* container);
  bool finds_python_key(PyObject* container);
  void prepare_hash(PyObject* key, int depth = 0);
  /// Must come before C code looks a key up (in a dict or set): runs what is written in Python of hashing and comparing it, under guard.
  void prepare_key(PyObject* key, PyObject* container = nullptr);
  bool same_or_equal(PyObject* left, PyObject* right);
  void tell_apart(PyObject* left, PyObject* right, int depth = 0);
  void tell_items_apart(PyObject* items, PyObject* item);
  std::optional<bool> equal_containers(PyObject* left, PyObject* right);
  bool holds_older_numbers(PyObject* value) const;
  bool contains_by_comparing(PyObject* iterable, PyObject* item);

  // ---- iteration.cpp
  /// `of_loop`: only a loop of the program takes its items.
  Ref iterator_of(PyObject* iterable, bool of_loop = false);
  /// Breaks where a stand-in has more items than are taken apart, unless a whole graph is demanded.
  void require_few_items(PyObject* stand_in);
  /// For C code that iterates a stand-in and hands on its items: an iterator, where there are so many that they are counted; else the stand-in.
  Ref counted_items(PyObject* stand_in);
  /// Empty at the end, with what a generator returned in `result`.
  Ref next_of(PyObject* iterator, Ref* result = nullptr);
  /// `at_most`: takes no more of them.
  std::vector<Ref> items_of(PyObject* iterable, std::size_t at_most = std::numeric_limits<std::size_t>::max());
  /// As Python asks where it has words of its own for what is none.
  static bool may_be_iterated(PyObject* object) { return Py_TYPE(object)->tp_iter != nullptr || PySequence_Check(object); }

  /// Something happened where no exception can be thrown (a deallocation) that this capture cannot follow: it breaks before that.
  void fail_later(const char* reason) {
    late_failure_ = reason;
    late_failure_at_ = heap_.now;
  }
  const char* late_failure() const { return late_failure_; }
  std::size_t late_failure_at() const { return late_failure_at_; }
  /// Of the loops that the capture is in the middle of.
  const UnrolledLoops& loops() const { return loops_; }

  // ---- continuation.cpp
  /// Sets up the frames of a continuation whose slots are `values`.
  void begin(const ChainStart& start, const CallArguments& values);
  /// Describes the frames where the run has stopped.
  /// `start` and `values`: where the run began, if it continued one.
  BreakState describe(Snapshot& snapshot, const ChainStart* start, const CallArguments& values);
  /// The program has changed state of a library by `setter(now)`: if another one is left at the end than was found, every call sets it there.
  void set_library_state(Ref setter, Ref before, Ref now);
  /// What such a call has set it to, borrowed; null where none has.
  PyObject* library_state(PyObject* setter) const;
  /// Adds what is left of such changes to the journal. Breaks before a mode that is still entered.
  void finish_library_state();
  /// The program has entered a mode of a library through `owner`, by a context that was born here: it must leave it before the segment ends,
  /// unless `enter` is a function that enters it after the graph, given the owner.
  void enter_mode(Ref owner, Ref context, Ref enter = {}) { modes_.push_back({std::move(owner), std::move(context), std::move(enter)}); }
  /// The context of the mode that was entered last, through `owner`; empty for another one, which was entered before the segment.
  Ref leave_mode(PyObject* owner);
  bool is_in_mode() const { return !modes_.empty(); }
  /// Breaks before a call that a library makes while the graph runs, and that may warn, where what the program has done to the module warnings
  /// is done after the graph, or where the program holds the list that records it.
  void require_warnings_in_order(const std::string& function);
  /// The exception that was being handled when the capture began, or null.
  PyObject* handled_at_start() const { return handled_at_start_.get(); }

  /// Breaks when C code would run Python methods of this object behind the evaluator's back.
  void require_no_python_methods(PyObject* value, std::span<PyObject* const> method_names, int depth = 0);
  void require_plain(PyObject* value, int depth = 0);
  /// The same of an argument of a library's function.
  void require_no_hooks(PyObject* value, int depth = 0);
  /// Breaks when C code would read, of an older object or what it holds, what no guard looks at.
  void require_readable(PyObject* value, int depth = 0);
  /// What C code that compares, prints or otherwise asks the elements must be given instead of `value`: no real tensor is in it.
  /// `iterated`: it only takes the items, one by one. Breaks where nothing can stand for it.
  Ref for_elements(PyObject* value, bool iterated = false);
  /// Breaks when an operator of C would read or change an older object of a type that is not known.
  void require_known_operands(std::initializer_list<PyObject*> operands);
  /// Breaks when the program lets go of an object whose class has something to do then.
  bool frames_hold_finalizers(PyObject* exception) const;
  void require_all_alive();
  void require_no_finalizer(const Slot& dropped);
  /// Breaks when a frame lets go of an older object that weak references look to: the last reference may be the frame's.
  void require_not_watched(const Slot& dropped);
  void require_no_effect_of_drop(const Slot& dropped) {
    require_no_finalizer(dropped);
    require_not_watched(dropped);
  }

  bool is_stand_in(PyObject* object) { return heap_.is_stand_in(object); }
  /// The type that the program must see.
  PyTypeObject* visible_type(PyObject* object) {
    if (is_stand_in(object) || heap_.is_number(object)) return recorder_.apparent_type(object);
    return is_evaluated_generator(object) ? &PyGen_Type : Py_TYPE(object);
  }
  /// Whether a symbolic int is the object or, at any depth, in its items.
  bool holds_number(PyObject* object);
  Ref with_items_read(PyObject* value);
  Ref with_numbers_read(PyObject* value);
  Ref text_of_container(PyObject* value);

  // ---- functions.cpp
  void push_frame(std::unique_ptr<Frame> frame);
  std::optional<Ref> call_function(PyObject* function, Arguments arguments, Completion completion);
  /// Runs a Python function to its end, whatever rule there is for it.
  Ref run_function(PyObject* function, Arguments arguments);
  /// The frame of a call whose arguments are bound to the function's parameters.
  std::unique_ptr<Frame> bind(PyObject* function, Arguments arguments);

  // ---- generator.cpp
  /// Resumes an evaluated generator with a value; empty when it has finished, with its result in `result`.
  Ref resume_generator(PyObject* generator, Ref value, Ref* result = nullptr);
  Ref throw_into_generator(PyObject* generator, Ref exception, Ref* result = nullptr);
  bool throw_into_delegate(PyObject* generator, PyObject* exception, Ref* given);

  // ---- construction.cpp
  std::optional<Ref> construct(PyTypeObject* type, Arguments arguments, Completion completion);
  /// type.__call__, past a `__call__` of the metaclass.
  std::optional<Ref> construct_plain(PyTypeObject* type, Arguments arguments, Completion completion);
  /// Makes a class as type.__new__(metaclass, name, bases, namespace, **keywords) does; the hooks that are written in Python are evaluated.
  /// `type.__new__` with its arguments.
  Ref make_class(const Arguments& arguments);
  Ref make_class(PyTypeObject* metaclass, PyObject* name, PyObject* bases, PyObject* space, const Arguments& keywords);
  /// Runs the body of a class statement in its namespace, a dict, and gives the cell of `__class__`, or None.
  Ref run_class_body(PyObject* body, Ref space);

 private:
  friend struct NestedRun;

  // ---- run.cpp
  void step();
  void unwind();
  bool somebody_handles(std::size_t base) const;
  bool interrupted() const;
  void require_no_stand_in_in_text();
  void finish(Ref result);
  void dispatch_names(Frame& f, const Instruction& i);

  // ---- stack
  void push(Ref object) { frame().stack.push_back({std::move(object), {}}); }
  Ref force(Slot slot) {
    if (!slot.pending) return std::move(slot.object);
    return heap_.enter(slot.pending, slot.object.get());
  }
  Slot pop_slot() {
    Slot slot = std::move(frame().stack.back());
    frame().stack.pop_back();
    return slot;
  }
  Ref pop() { return force(pop_slot()); }
  /// The object `depth` entries below the top (1 is the top), guarded, left where it is.
  PyObject* peek(int depth) {
    Slot& slot = frame().stack[frame().stack.size() - depth];
    if (slot.pending) slot = {heap_.enter(slot.pending, slot.object.get()), {}};
    return slot.object.get();
  }
  std::vector<Ref> pop_many(int count);

  // ---- families, one function an opcode
  void op_load_fast(Frame& f, const Instruction& i);
  void op_make_cell(Frame& f, const Instruction& i);
  void op_load_closure(Frame& f, const Instruction& i);
  PyObject* cell_at(Frame& f, int slot);
  Ref load_cell(Frame& f, int slot);
  void op_store_deref(Frame& f, const Instruction& i);
  void op_delete_deref(Frame& f, const Instruction& i);
  Ref load_global(Frame& f, PyObject* name);
  Ref load_name(Frame& f, PyObject* name);
  Ref name_of_relative_import(Frame& f, PyObject* name, long level);
  void op_import_name(Frame& f, const Instruction& i);
  void op_import_from(Frame& f, const Instruction& i);
  void op_load_super_attr(Frame& f, const Instruction& i);
  Ref super_attribute(PyObject* super_object, PyObject* name);
  void op_build(Frame& f, const Instruction& i);
  void op_extend(Frame& f, const Instruction& i);
  bool extend_older(const Instruction& i);
  void add_to_set(PyObject* set, PyObject* item);
  std::optional<Ref> call_set_method(PyObject* set, std::string_view name, const Arguments& arguments);
  /// Raises a TypeError with these words for the type.
  void require_iterable(PyObject* value, const char* complaint);
  void op_unpack(Frame& f, const Instruction& i);
  void op_format(Frame& f, const Instruction& i);
  void op_match(Frame& f, const Instruction& i);
  Ref match_keys(PyObject* subject, PyObject* keys);
  Ref match_class(PyObject* subject, PyObject* type, int positional, PyObject* keyword_names);
  Ref slice_of_parts(PyObject* slice);
  void op_slice(Frame& f, const Instruction& i);
  void op_unary(Frame& f, const Instruction& i);
  void op_is(Frame& f, const Instruction& i);
  void op_jump_if(Frame& f, const Instruction& i);
  void jump(Frame& f, std::int32_t target);
  void note_counters(const Frame& frame);
  Ref iterator_of_array(PyObject* stand_in);
  bool has_more_items(PyObject* stand_in, std::size_t most);
  void require_few_pieces(PyObject* result);
  void require_few_pieces_of(PyObject* callable, const Arguments& arguments);
  void step_over_varying(const Frame& f);
  void step_over_varying_range(std::span<const Ref> bounds);
  void step_loop(const Frame& f);
  void op_for_iter(Frame& f, const Instruction& i);
  void op_call(Frame& f, int count, Ref names);
  void op_call_function_ex(Frame& f, const Instruction& i);
  void op_make_function(Frame& f, const Instruction& i);
  void op_set_function_attribute(Frame& f, const Instruction& i);
  void op_exception(Frame& f, const Instruction& i);
  void op_raise(Frame& f, const Instruction& i);
  void push_handled_exception();
  Ref traceback_of(PyObject* exception);
  void require_born_here(PyObject* exception);
  void op_before_with(Frame& f);
  void op_return_generator(Frame& f);
  void op_yield(Frame& f);
  void op_send(Frame& f, const Instruction& i);
  void op_cleanup_throw();

  template <class Read>
  std::optional<Ref> unless_missing(Read read);
  bool truth_from(PyObject* given);
  void expect_truth(const Frame& f);
  bool truth_for_jump(const Frame& f, PyObject* value, const Instruction& jump, std::int32_t after);
  std::optional<Ref> find_generic(PyObject* owner, PyObject* name);
  Ref cached_property(PyObject* property, PyObject* owner);
  std::optional<Ref> attribute_of_tensor_class(PyObject* stand_in, PyObject* found, PyTypeObject* type, PyObject* name);
  std::optional<Ref> attribute_of_real_tensor(PyObject* stand_in, PyObject* name);
  Ref dict_of_real_tensor(PyObject* stand_in);
  Ref attribute_of_module(PyObject* module, PyObject* name);
  Ref attribute_of_type(PyTypeObject* type, PyObject* name);
  Ref part_of_class(PyTypeObject* type, PyObject* descriptor, PyObject* name);
  Ref attribute_of_function(PyObject* function, PyObject* name);
  Ref attribute_of_method(PyObject* method, PyObject* name);
  void make_descriptor_known(PyObject* found, PyTypeObject* type, PyObject* name);
  Ref bind_descriptor(PyObject* found, PyObject* owner, PyTypeObject* type, PyObject* name, PyTypeObject* holder = nullptr);
  Ref data_descriptor(PyObject* found, PyObject* owner, PyTypeObject* type, PyObject* name, PyTypeObject* holder = nullptr);

  struct CachedCall;
  Ref call_cached(PyObject* callable, Arguments arguments);
  Ref known_result(const CachedCall& call) const;
  Ref call_known(const CachedCall& call, const Ref& known);
  Ref take_from_cache(const CachedCall& call, PyObject* held);
  Ref fill_cache(const CachedCall& call, PyObject* function, Arguments arguments);
  void note_cached(const CachedCall& call, const Ref& value, bool fixed);
  void require_nothing_dropped(PyObject* cache);
  std::optional<Ref> call_builtin(PyObject* callable, Arguments arguments, Completion completion);
  std::optional<Ref> call_method(PyObject* callable, PyObject* self, Arguments arguments);
  void require_no_method_of_name(PyObject* callable, PyObject* value);
  bool is_held(PyObject* object) const;
  std::optional<Ref> call_stand_in_with_numbers(PyObject* self, PyObject* name, const Arguments& arguments);
  std::optional<Ref> operator_in_place_with_number(PyObject* left, PyObject* right, PyObject* name);
  std::optional<Ref> operator_with_number(PyObject* left, PyObject* right, PyObject* name, PyObject* reflected);
  std::optional<Ref> compare_in_c(int operation, PyObject* left, PyObject* right);
  void require_no_elements(PyObject* stand_in, PyObject* other);
  std::optional<Ref> python_operator(PyObject* left, PyObject* right, PyObject* name, PyObject* reflected, bool* tried);

  Recorder& recorder_;
  Heap& heap_;
  const CaptureOptions& options_;
  std::vector<std::unique_ptr<Frame>> frames_;
  std::vector<Ref> stopped_;  // results of nested runs
  std::unordered_map<PyObject*, bool> takes_, shipped_;
  std::unordered_map<PyObject*, bool> python_keys_;  // by older container that nothing has written: whether it has such keys
  Ref cached_;  // dict: (cache, key) -> (its result, whether that is the same whoever computes it)
  std::unordered_set<PyObject*> filled_caches_;  // of a limited size, that the program has given a result
  std::size_t instructions_ = 0, recorded_ = 0;
  int nested_ = 0;
  UnrolledLoops loops_;
  const char* late_failure_ = nullptr;
  std::size_t late_failure_at_ = 0;
  LastReferences last_references_;
  std::vector<int> ends_;
  std::size_t kept_frames_ = 0;  // those that were there when the capture began
  struct LibraryState {
    Ref setter, found, left;
  };
  std::vector<LibraryState> library_states_;
  struct Mode {
    Ref owner, context, enter;
  };
  std::vector<Mode> modes_;  // entered and not left, innermost last
  Ref missing_;              // the AttributeError by which code said that the attribute looked for last is missing; empty where none was run
  Ref handled_at_start_ = compat::handled_exception();
  const WarningState warnings_at_start_;

  bool recorder_takes(PyObject* callable);
  bool is_as_shipped(PyObject* function, const Arguments& arguments);
  /// Whether it is a C function bound to a tensor or a stand-in: which of the two, depends on where the program got it.
  bool is_method_of_tensor(PyObject* object);
  void enter_function(PyObject* function, Arguments arguments, Completion completion);
};

/// Raises TypeError, as Python does, where an `__init__` gave something.
void require_nothing_given(const Ref& by_init);

/// Ends the run before the instruction that `CaptureOptions::stop_before` names. Never crosses a C frame: only the outermost run throws it.
struct StopHere {};

/// The evaluator of the capture that runs on this thread, or null. Callbacks from C code find it here.
Evaluator* current_evaluator();

/// The most derived metaclass of the bases and of the one that is given, which may be none.
PyTypeObject* metaclass_of(PyTypeObject* given, PyObject* bases);

}  // namespace tenon::python
