// What the evaluator needs of whoever records tensor operations. It knows no op and no tensor library itself.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "python/guards/guard_set.h"
#include "python/objects/graph_break.h"
#include "python/objects/names.h"

namespace tenon::python {

/// Makes stand-ins for tensors and arrays, and records what is done to them. One object a capture.
///
/// Operations reach it in two ways: the evaluator runs operators, methods and attribute reads on a stand-in for real, and the
/// stand-in's own slots (`__torch_function__`, `__array_ufunc__`, …) come here; and calls of functions that `takes` accepts are handed
/// over by `call`, whether or not an argument is a stand-in (creation functions).
class Recorder {
 public:
  enum class Role : std::uint8_t {
    other,     // an ordinary Python object
    stand_in,  // one of ours
    tensor,    // a real tensor or array: replaced by a stand-in whenever the program reads one
    number,    // a stand-in for an int or float, or a str made of them: a symbolic one. To the evaluator an atom, whose own slots record or guard what is done with it
    scalar,    // a NumPy scalar: replaced when read from something older than the call; one made during capture is a constant
  };

  /// Where the program is, for locations of nodes and messages. Set before every call that may record.
  struct Position {
    PyCodeObject* code = nullptr;
    int byte_offset = 0;
  };
  Position position;
  /// Called before a call is recorded that a library makes while the graph runs, where it may warn. Throws GraphBreak where the program would
  /// see the warning too late, or not see it. `function` is for people.
  std::function<void(const std::string& function)> before_it_may_warn = [](const std::string&) {};

  virtual ~Recorder() = default;

  /// How many operations have been recorded.
  virtual std::size_t recorded() const { return 0; }
  /// How many of them have to do with more than a few elements.
  virtual std::size_t array_work() { return 0; }
  /// Which of them came first to the number for whose value the capture ends; nothing where one that it is made of has to do with more.
  virtual std::optional<std::size_t> first_of_needed() const { return {}; }

  /// The role of objects of exactly this type. Asked once a type and capture.
  virtual Role role(PyTypeObject* type) = 0;

  /// Makes the stand-in for a real object that was there before the call, and adds the guards on its metadata (a ValueCheck at
  /// `source`; `guards.add_distinct(source)` where aliasing matters). Asked once an object; a second source of the same object is
  /// guarded by the evaluator. Throws GraphBreak for what cannot go into a graph.
  virtual Ref input(PyObject* real, SourceId source, GuardSet& guards) = 0;

  /// What the program must see instead of an int, float or str that was there before the call and may vary, with the guards on it added; empty for one
  /// that is a constant, which the caller guards.
  virtual Ref number(PyObject*, SourceId, GuardSet&) { return {}; }
  /// What the program must see instead of the length of a container that was there before the call and may vary, with the guards on it added; empty for
  /// one that is a constant, which the caller guards.
  virtual Ref length_at(SourceId, std::int64_t, GuardSet&) { return {}; }
  /// Whether a length that is to be guarded has been so many that each would be one more variant.
  virtual bool length_wears_out(SourceId, std::int64_t, GuardSet&) { return false; }
  /// Whether the items or the length of a sequence, or of what an iterator will give, have made a variant after the other.
  virtual bool items_keep_varying(SourceId, GuardSet&) { return false; }
  /// Whether the ints among the bounds of a loop have been so many that each would be one more variant.
  virtual bool rounds_keep_varying(std::span<const Ref>) { return false; }
  /// An int at `source` is the counter of a loop: it varies, also to `next` where that is not null.
  virtual void counts(SourceId, PyObject*, PyObject*, GuardSet&) {}
  /// The int that a stand-in of role number stands for, with its value guarded.
  virtual Ref plain_number(PyObject* number) { return Ref::borrow(number); }
  /// Whether ints of two sequences of the same length, among which are stand-ins of role number, are equal place by place: what makes them differ
  /// is one condition, whichever it is. None where the comparison of each is as good.
  virtual std::optional<bool> equal_ints(std::span<PyObject* const>, std::span<PyObject* const>) { return std::nullopt; }
  /// Whether stand-ins of ints hash as the int now, with nothing guarded. Gives what was set before.
  virtual bool hash_unguarded(bool) { return false; }
  /// The str that a function makes of arguments among which are stand-ins of role number: one more such stand-in. Empty where they must be known.
  virtual Ref late_text(PyObject*, PyObject*) { return {}; }
  /// How the str for which such a stand-in stands is made, of arguments that may hold stand-ins; none for others, and for one that is an input.
  struct LateCall {
    Ref function, arguments;
  };
  virtual std::optional<LateCall> late_call(PyObject*) { return std::nullopt; }
  /// The place in a sequence that a stand-in of role number says, where ints of older objects alone decide, and an item that may be another one
  /// at each call; with it, the place in this call.
  struct VaryingPlace {
    ChosenPlace chosen;
    std::int64_t now = 0;
  };
  virtual std::optional<VaryingPlace> place_of(PyObject*) { return std::nullopt; }
  /// Whether what is at a place that varies may be an input that varies.
  virtual bool may_be_chosen(PyObject*) { return false; }
  /// Python's number for a stand-in of a real scalar of NumPy; empty for another object, and where the elements are needed.
  virtual Ref number_of_scalar(PyObject*) { return {}; }
  /// int() or float() of a stand-in, of role number too, by the type; empty where the elements are needed.
  virtual Ref number_of(PyObject*, PyTypeObject*) { return {}; }
  /// The Python number that a stand-in of one element is formatted as; empty where its elements are needed.
  virtual Ref number_in_format(PyObject*, PyObject*) { return {}; }
  /// The truth of a stand-in that is the same at every call; none where the elements are needed.
  virtual std::optional<bool> truth_of(PyObject*) { return std::nullopt; }
  /// Goes on as if a stand-in's truth were this, which each run then checks before anything is done; false where that is not possible.
  virtual bool assume(PyObject*, bool) { return false; }
  /// While a comparison or a call is evaluated: the outcome with which the program goes on, where it does nothing but raise with the other one.
  std::optional<bool> truth_to_come;
  /// An operator of two constants, which stands for all later calls. Throws GraphBreak when a library warns of it.
  virtual Ref constant_operator(binaryfunc operation, PyObject* left, PyObject* right) { return checked(operation(left, right)); }
  /// len() of a stand-in; empty where the stand-in's own answer is right.
  virtual Ref length(PyObject*) { return {}; }
  /// The guards on numbers that the capture relied on; null for none.
  virtual std::shared_ptr<NumbersGuard> numbers() { return nullptr; }

  /// The type that the program must see: `type(x)`, `x.__class__`, `isinstance`.
  virtual PyTypeObject* apparent_type(PyObject* stand_in) = 0;

  /// Whether a type of scalars has one object for each of its values: NumPy's booleans.
  virtual bool is_one_object_a_value(PyTypeObject*) const { return false; }

  /// Whether a call of this object (a function, C function, ufunc, class) is an operation to record, without looking inside.
  virtual bool takes(PyObject* callable) = 0;

  /// Whether what a class or module of the library was found to have by a name is its own, not the program's.
  virtual bool is_own(PyObject*) { return true; }
  /// Whether a class is one of the library's.
  virtual bool is_own_class(PyObject*) { return true; }

  /// Methods by which the library's functions ask arguments that are none of its tensors for a value, or leave the work to them.
  virtual std::span<PyObject* const> hooks() const { return {&names().__index__, 1}; }

  /// Whether operators of a stand-in take objects that the library does not know, and ask them for elements.
  virtual bool operates_on_any(PyObject*) const { return false; }

  /// The Python function by which a library's callable does its work, where that is to be evaluated instead of recorded (borrowed); else null.
  virtual PyObject* written_in_python(PyObject*) { return nullptr; }
  /// The Python function that does what a call would be recorded as, where that has a gradient and the recorded call has none (also the one that a
  /// program has registered for an operator of its own), or kernels where the recorded call has none; else empty. It gives NotImplemented for a call that it leaves to the recorder.
  virtual Ref differentiable(PyObject*, std::span<const Ref>) { return {}; }
  /// The Python function to which a call that only the library differentiates is given, with the callable as its first argument; else empty. It gives
  /// NotImplemented like that one. `tried`: the call was to be recorded, which has thrown GradientNeeded.
  virtual Ref differentiable_by_library(PyObject*, std::span<const Ref>, bool tried) {
    (void)tried;
    return {};
  }
  /// What the library keeps of such a call for its gradients, as tenon._kept_runs.outlook has it; empty where it cannot say.
  virtual Ref outlook_on(PyObject*, PyObject*, PyObject*) { return {}; }
  /// The next call is made by `keeper` (tenon._kept_runs.Keeper) wherever the graph makes it. Gives, when it is recorded, what stands for the number of
  /// its run. Throws GraphBreak where it is no call that the library makes.
  virtual void keep_next_run(Ref) {}
  virtual Ref kept_run() { throw GraphBreak("a call is to be kept for its gradients"); }
  /// Records a call of a function that gives the gradients of tensors, one each. `keeps`: and behind them the number of a run for their own gradients.
  virtual std::vector<Ref> gradients_by(PyObject*, PyObject*, std::span<PyObject* const>, bool keeps) { (void)keeps; throw GraphBreak("gradients are computed by a call"); }

  /// How a function makes views that are pieces of its first argument.
  enum class Pieces : std::uint8_t {
    none,          // it does not
    by_dimension,  // one for each place along a dimension
    by_size,       // of so many places each, or by a list of sizes
    by_count,      // so many, or by a list of places
  };
  virtual Pieces pieces_of(PyObject*) { return Pieces::none; }

  /// Records (or answers, as for `torch.is_tensor`) such a call. `kwargs` is a dict or null. Throws GraphBreak, or PythonError with the
  /// library's own exception set.
  virtual Ref call(PyObject* callable, PyObject* args, PyObject* kwargs) = 0;

  /// Records what follows as a branch of a control op, until `end_branch` names the stand-ins that the branch gives. Two branches
  /// ended one after the other are then `choose`n among: gives the stand-ins of the results. `function` is for people. What a branch
  /// may not do throws GraphBreak, after which the recording is of no use.
  virtual void begin_branch() { throw GraphBreak("a control op"); }
  virtual void end_branch(std::span<PyObject* const>) {}
  virtual std::vector<Ref> choose(PyObject*, PyObject*) { return {}; }

  /// Records what follows as torch.vmap has it computed for one example of a batch: gives those of tensors, along their first dimensions, until `end_batch`
  /// names what the function gives of tensors: gives these for the whole batch. What is not computed point by point throws GraphBreak.
  virtual std::vector<Ref> begin_batch(std::span<PyObject* const>) { throw GraphBreak("torch.vmap"); }
  virtual std::vector<Ref> end_batch(std::span<PyObject* const>) { return {}; }
  /// Whether the program enters torch's mode in which a tensor without dimensions is no number as an index, or leaves it.
  virtual void index_by_tensors(bool) { throw GraphBreak("a torch function mode is entered"); }

  /// Floating-point errors are handled as np.errstate with these modes by kind does, until it is left. Throws GraphBreak for what no graph can do.
  virtual void enter_error_state(PyObject*) { throw GraphBreak("np.errstate changes how floating-point errors are handled", kErrstateHint); }
  virtual void leave_error_state() {}

  /// A walk of the library's autograd engine: from tensors, with a gradient for each (None where the library would make one), to tensors, or to all
  /// leaves that it comes to where none are given.
  struct GradientWalk {
    std::vector<PyObject*> from, gradients, to;
    std::function<bool(PyObject* leaf)> has_new_hooks;  // which the program has put on it since it was entered
    bool keeps_graph = false;     // what the tensors were computed with may be walked through again
    bool creates_graph = false;   // the gradients are to have gradients
    bool may_miss = false;        // not all that is asked for must be on the way
  };
  struct Gradient {
    Ref of, gradient;                 // no gradient where the walk does not come to it
    std::optional<std::int64_t> turn; // of a leaf, where the program has put hooks on one: the library comes to those with higher numbers first
    bool hooked = false;
  };
  /// A function of which the program itself says how gradients flow through it, in the order in which these were applied, and the gradients of its
  /// outputs; no gradient where the walk does not come to one.
  struct FunctionGradients {
    std::size_t function = 0;
    Ref context;  // as `apply_function` was given it
    std::vector<Ref> gradients;
  };
  struct Walked {
    std::vector<Gradient> gradients;
    std::vector<FunctionGradients> functions;  // to which it has come, and beyond which it has not gone
    std::vector<std::pair<Ref, std::vector<std::size_t>>> spread;  // gradients that the library gives without copies, and the dimensions along which all elements are one
  };
  /// Records what such a walk computes. Throws GraphBreak where the library's own must do it, or refuses it.
  virtual Walked walk(const GradientWalk&, GuardSet&) { throw GraphBreak("gradients are computed"); }
  /// Goes on behind a function: from its inputs, with what the program gives as their gradients (`from` is not looked at).
  virtual Walked walk_behind(std::size_t, const GradientWalk&, GuardSet&) { throw GraphBreak("gradients are computed"); }
  /// Makes outputs of the program's those of such a function of inputs. `saved`: what is read to give its gradients. `views`: the library gives views of the
  /// inputs, to which it refuses writes.
  virtual void apply_function(PyObject* context, std::span<PyObject* const> inputs, std::span<PyObject* const> outputs, std::span<PyObject* const> saved, bool views) {
    (void)context, (void)inputs, (void)outputs, (void)saved, (void)views;
    throw GraphBreak("a function with a gradient of its own is applied");
  }

  /// The same of a function whose results may leave the graph: the gradients become a part of it. Begins with what was computed; then comes the way
  /// back, as the program goes it (`again`: with grad mode, so that it can be differentiated), from tensors that stand for the gradients of the outputs to
  /// those of the inputs (None where there is none). `keeps`: the library lets the gradients be asked for once. Each throws GraphBreak.
  virtual bool functions_may_leave() { return false; }
  virtual bool is_in_another_function() { return false; }
  virtual void begin_function(std::span<PyObject* const>, std::span<PyObject* const>, std::span<PyObject* const>, std::span<PyObject* const>) { throw GraphBreak("a function with a gradient of its own is applied"); }
  virtual std::vector<Ref> begin_way_back(bool) { return {}; }
  virtual void end_way_back(std::span<PyObject* const>) {}
  virtual void end_function(bool, bool, std::string) {}

  /// Makes constants of tensors that the call has made leaves: what was computed from them alone requires no grad from then on. Throws GraphBreak where
  /// one of the others was written, or is a view.
  virtual void forget_leaves(std::span<PyObject* const>, std::span<PyObject* const>) { throw GraphBreak("gradients are computed"); }
  /// Undoes that, for them and for what was computed from them before.
  virtual void remember_leaves(std::span<PyObject* const>) { throw GraphBreak("gradients are computed"); }

  /// Has walks that come to tensors of the graph ask the program, as of a function whose only inputs and outputs they are.
  /// With `retains` it is of the hooks of one tensor: gives what is asked for those that it has already. Where that says so, the program writes its `.grad` from then on.
  virtual Ref hook(PyObject* context, std::span<PyObject* const> tensors, std::optional<bool> retains) {
    (void)context, (void)tensors, (void)retains;
    throw GraphBreak("a hook is put on a tensor");
  }
  /// Has walks break the graph that come to these tensors, where they do not add to the `.grad` of all leaves. False where the program has put hooks on
  /// leaves: the library calls these in a walk of its own for the tensors.
  virtual bool let_through_to_all_leaves(std::span<PyObject* const>, GuardSet&) { throw GraphBreak("gradients are computed"); }

  /// A place in the recording, and what a part of the program has done since besides computing.
  struct Progress {
    std::size_t tensors = 0, writes = 0, draws = 0, functions = 0;
  };
  struct Deeds {
    bool writes = false;           // to tensors that are older
    bool writes_given = false;     // to tensors that it was given
    bool kept_since = false;       // the library has kept something for gradients at the last such write, or after it
    bool draws = false, draws_of_another_library = false;
    bool functions = false;        // of which the program says how gradients flow through them
  };
  virtual Progress progress() const { return {}; }
  virtual Deeds deeds_since(const Progress&, std::span<PyObject* const> given) const { return (void)given, Deeds(); }
  /// From here on calls give the random numbers that those from a place on gave, until the end.
  virtual void draw_again_from(const Progress&) { throw GraphBreak("random numbers are drawn again"); }
  virtual void end_drawing_again() {}
  /// Whether a tensor has a `.grad` that the program may read and write: it was there before, or is a leaf of the library's autograd graph.
  virtual bool keeps_gradient(PyObject*) { return false; }
  /// Has the library record, or not record, what is computed from a tensor from here on (torch.Tensor.requires_grad_).
  virtual void ask_for_gradient(PyObject*, bool) { throw GraphBreak("gradients are asked for"); }
  /// An older tensor of which the program has changed whether it requires a gradient: when the call began, and now. Where it did, it was a leaf.
  struct AskedInput {
    PyObject* stand_in;
    bool before, now;
  };
  virtual std::vector<AskedInput> asked_inputs() const { return {}; }
  /// Whether a run may end in what was recorded so far, and the call be repeated as plain Python.
  virtual bool may_end_early() { return true; }
  /// Takes one stand-in as the gradient of the other, unless the library would not: of another shape or kind.
  virtual bool take_gradient(PyObject*, PyObject*) { return false; }

  /// The number of the output that carries this stand-in's value; the same number when asked again.
  virtual std::uint32_t output(PyObject* stand_in) = 0;

  /// Whether a stand-in is the result of a node of the library's autograd graph, which is known only when the call has run.
  virtual bool has_history(PyObject*) const { return false; }

  /// The input source when the stand-in, of a tensor or a number, is an input itself (so that identity is kept), else none.
  virtual SourceId input_source(PyObject* stand_in) = 0;
};

}  // namespace tenon::python
