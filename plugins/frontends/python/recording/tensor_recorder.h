// Records what a captured program does with tensors and arrays.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "python/graph/array_work.h"
#include "python/guards/recorder.h"
#include "python/recording/graph/assumptions.h"
#include "python/recording/graph/history.h"
#include "python/recording/graph/known_values.h"
#include "python/recording/graph/recorded_graph.h"
#include "python/recording/graph/recorded_inputs.h"
#include "python/recording/graph/recorded_trace.h"
#include "python/recording/memory/metadata_answers.h"
#include "python/recording/memory/written_memory.h"
#include "python/recording/numbers/element_numbers.h"
#include "python/recording/numbers/number_inputs.h"
#include "python/recording/numbers/number_stand_ins.h"
#include "python/recording/numbers/scalar_functions.h"
#include "python/recording/opaque/opaque_writes.h"
#include "python/recording/opaque/random_calls.h"
#include "python/recording/recorded_batches.h"
#include "python/recording/recorded_branches.h"
#include "python/recording/recorded_calls.h"
#include "python/recording/recorded_crossings.h"
#include "python/recording/recorded_functions.h"
#include "python/recording/recorded_gradients.h"
#include "python/recording/recorded_outputs.h"
#include "python/stand_ins/array_stand_in.h"
#include "python/stand_ins/stand_in_uses.h"

namespace tenon::python {

/// The recorder of one capture. While it lives, stand-ins of the same thread record into it. It is put together of parts, which need of each
/// other what their constructors take, and hands each use to the part that knows.
class TensorRecorder final : public Recorder, public StandInUses {
 public:
  using Numbers = RecordedGraph::Numbers;
  /// `freeze`: parameters and buffers that the program does not write are the same at each call, under guards.
  /// `gradients`: those of the graph will be asked for, where torch's results would require grad. `functions_may_leave`: so will those of results of functions
  /// with gradients of their own.
  TensorRecorder(const TorchState& state, Numbers numbers, TensorPlaces::Allowed places, bool freeze = false, bool gradients = false, bool functions_may_leave = false);

  // what objects are
  Role role(PyTypeObject* type) override;
  PyTypeObject* apparent_type(PyObject* stand_in) override;
  bool is_one_object_a_value(PyTypeObject* type) const override;
  bool takes(PyObject* callable) override;
  std::span<PyObject* const> hooks() const override;
  bool is_own(PyObject* found) override;
  bool is_own_class(PyObject* type) override;
  bool operates_on_any(PyObject* stand_in) const override { return Py_TYPE(stand_in) == array_stand_in_type(); }
  PyObject* written_in_python(PyObject* callable) override;
  Ref differentiable(PyObject* callable, std::span<const Ref> arguments) override;
  Ref differentiable_by_library(PyObject* callable, std::span<const Ref> arguments, bool tried) override;
  Ref outlook_on(PyObject* callable, PyObject* args, PyObject* kwargs) override;
  void keep_next_run(Ref keeper) override { opaque_.keep_next_run(std::move(keeper)); }
  Ref kept_run() override { return opaque_.kept_run(); }
  std::vector<Ref> gradients_by(PyObject* function, PyObject* args, std::span<PyObject* const> of, bool keeps) override {
    return opaque_.record_gradients(function, args, core_.stand_ins.require(of), keeps);
  }
  Pieces pieces_of(PyObject* callable) override;

  // inputs
  Ref input(PyObject* real, SourceId source, GuardSet& guards) override { return inputs_.add(real, source, guards); }
  SourceId input_source(PyObject* stand_in) override;
  bool has_history(PyObject* stand_in) const override { return history_.has_node(stand_in); }
  Ref number(PyObject* object, SourceId source, GuardSet& guards) override { return number_inputs_.number(object, source, guards); }
  Ref length_at(SourceId source, std::int64_t length, GuardSet& guards) override { return number_inputs_.length_at(source, length, guards); }
  bool length_wears_out(SourceId source, std::int64_t length, GuardSet& guards) override { return number_inputs_.length_wears_out(source, length, guards); }
  bool items_keep_varying(SourceId source, GuardSet& guards) override { return number_inputs_.items_keep_varying(source, guards); }
  bool rounds_keep_varying(std::span<const Ref> bounds) override { return number_inputs_.rounds_keep_varying(bounds); }
  void counts(SourceId source, PyObject* count, PyObject* next, GuardSet& guards) override { number_inputs_.counts(source, count, next, guards); }
  std::optional<bool> equal_ints(std::span<PyObject* const> left, std::span<PyObject* const> right) override { return number_inputs_.equal_ints(left, right); }
  Ref plain_number(PyObject* number) override { return number_inputs_.plain_number(number); }
  std::optional<VaryingPlace> place_of(PyObject* number) override { return number_inputs_.place_of(number); }
  bool may_be_chosen(PyObject* object) override { return number_inputs_.may_be_chosen(object); }
  bool hash_unguarded(bool unguarded) override { return std::exchange(core_.symbols.hashes_unguarded, unguarded); }
  std::shared_ptr<NumbersGuard> numbers() override { return core_.symbols.guard(); }

  // numbers and texts
  Ref scalar_arithmetic(FloatTape::Op op, PyObject* a, PyObject* b) override { return arithmetic_.of_scalars(op, a, b); }
  Ref float_arithmetic(FloatTape::Op op, PyObject* a, PyObject* b) override { return arithmetic_.of_ints(op, a, b); }
  Ref scalar_magnitude(PyObject* a) override { return arithmetic_.magnitude(a); }
  bool scalar_comparison(int operation, PyObject* a, PyObject* b) override { return arithmetic_.compare(operation, a, b); }
  Ref whole_number(PyObject* number, std::string_view function) override { return arithmetic_.whole_number(number, function); }
  Ref rounded(PyObject* number, PyObject* digits) override { return arithmetic_.rounded(number, digits); }
  Ref number_of(PyObject* stand_in, PyTypeObject* type) override {
    require_no_example();
    return element_numbers_.number(stand_in, type);
  }
  Ref number_of_scalar(PyObject* object) override;
  Ref number_in_format(PyObject* stand_in, PyObject* spec) override {
    require_no_example();
    return element_numbers_.number_in_format(stand_in, spec);
  }
  Ref late_text(PyObject* function, PyObject* arguments) override { return texts_.made(function, arguments); }
  std::optional<LateCall> late_call(PyObject* stand_in) override { return how_text_is_made(stand_in); }
  [[noreturn]] void need_scalar(const ScalarValue& scalar, const char* use) override { python::need_scalar(core_.symbols, scalar, use); }
  [[noreturn]] void need_text(PyObject* text, const char* use) override { python::need_text(core_.symbols, text, use); }

  // tensors
  Ref known_number(PyObject* stand_in) override { return known_elements_.number(stand_in); }
  Ref call_operator(PyObject* ufunc, PyObject* args) override;
  Ref call(PyObject* callable, PyObject* args, PyObject* kwargs) override;
  std::size_t recorded() const override { return core_.graph.nodes().size(); }
  std::size_t array_work() override { return array_work_.count(core_.graph); }
  std::optional<std::size_t> first_of_needed() const override {
    const ir::ValueId number = core_.symbols.needed();
    return number ? first_of_number(core_.graph, number) : std::nullopt;
  }
  Ref length(PyObject* stand_in) override { return metadata_.length(stand_in); }
  Ref constant_operator(binaryfunc operation, PyObject* left, PyObject* right) override;
  std::optional<bool> truth_of(PyObject* stand_in) override {
    require_no_example();
    if (Ref known = known_elements_.number(stand_in)) return checked(PyObject_IsTrue(known.get())) != 0;
    return known_.truth(stand_in);
  }
  bool assume(PyObject* stand_in, bool truth) override {
    require_no_example();
    return assumptions_.assume(stand_in, truth);
  }
  Walked walk(const GradientWalk& walk, GuardSet& guards) override {
    functions_.require_walkable(walk.from);
    return gradients_.walk(walk, guards);
  }
  Walked walk_behind(std::size_t function, const GradientWalk& walk, GuardSet& guards) override { return gradients_.walk_behind(function, walk, guards); }
  void apply_function(PyObject* context, std::span<PyObject* const> inputs, std::span<PyObject* const> outputs, std::span<PyObject* const> saved,
                      bool views) override {
    gradients_.apply_function(context, inputs, outputs, saved, views);
  }
  bool functions_may_leave() override { return functions_.may_leave(); }
  bool is_in_another_function() override { return functions_.is_in_another(); }
  void begin_function(std::span<PyObject* const> inputs, std::span<PyObject* const> outputs, std::span<PyObject* const> kept, std::span<PyObject* const> by_itself) override {
    functions_.begin(inputs, outputs, kept, by_itself);
  }
  std::vector<Ref> begin_way_back(bool again) override { return functions_.begin_way(again); }
  void end_way_back(std::span<PyObject* const> gradients) override { functions_.end_way(gradients); }
  void end_function(bool keeps, bool once, std::string absent) override { functions_.end(keeps, once, std::move(absent)); }
  void forget_leaves(std::span<PyObject* const> leaves, std::span<PyObject* const> others) override {
    history_.forget(core_.stand_ins.require(leaves), core_.stand_ins.require(others));
  }
  void remember_leaves(std::span<PyObject* const> leaves) override { history_.remember(core_.stand_ins.require(leaves)); }
  Ref hook(PyObject* context, std::span<PyObject* const> tensors, std::optional<bool> retains) override { return history_.hook(Ref::borrow(context), core_.stand_ins.require(tensors), retains); }
  bool let_through_to_all_leaves(std::span<PyObject* const> tensors, GuardSet& guards) override {
    history_.let_through_to_all_leaves(core_.stand_ins.require(tensors));
    return gradients_.guard_leaves_without_hooks(guards);
  }
  Progress progress() const override { return {core_.stand_ins.size(), core_.stand_ins.written().size(), core_.draws.size(), history_.function_count()}; }
  Deeds deeds_since(const Progress& place, std::span<PyObject* const> given) const override;
  void draw_again_from(const Progress& place) override { core_.draws.begin_again(place.draws); }
  void end_drawing_again() override { core_.draws.end_again(); }
  void ask_for_gradient(PyObject* tensor, bool wanted) override { history_.ask_for_gradient(core_.stand_ins.require(tensor), wanted); }
  std::vector<AskedInput> asked_inputs() const override;
  bool keeps_gradient(PyObject* tensor) override { return gradients_.keeps_gradient(tensor); }
  bool may_end_early() override { return !assumptions_.empty() || core_.any_may_raise(); }
  bool take_gradient(PyObject* tensor, PyObject* value) override { return gradients_.take_gradient(tensor, value); }
  std::uint32_t output(PyObject* stand_in) override { return outputs_.number(stand_in); }

  // control
  void begin_branch() override { branches_.begin(); }
  void end_branch(std::span<PyObject* const> results) override { branches_.end(results); }
  std::vector<Ref> choose(PyObject* function, PyObject* predicate) override { return branches_.choose(function, predicate); }
  std::vector<Ref> begin_batch(std::span<PyObject* const> tensors) override { return batches_.begin(tensors); }
  std::vector<Ref> end_batch(std::span<PyObject* const> results) override { return batches_.end(results); }
  void index_by_tensors(bool enters) override { index_modes_ += enters ? 1 : -1; }
  void enter_error_state(PyObject* modes) override;
  void leave_error_state() override { core_.error_handlings.leave(core_.graph); }

  /// Whether the capture must be repeated from what this one has found out about numbers.
  bool learned() const { return core_.symbols.learned(); }
  bool has_symbols() const { return core_.symbols.any() || texts_.any_input(); }
  bool breaks_for_number() const { return core_.symbols.broke(); }
  /// Whether what a function with gradients of its own gave was to leave the graph.
  bool functions_leave() const { return outputs_.functions_leave(); }
  /// Ends the recording. Stand-ins are dead afterwards, but for the keys of the trace.
  CapturedGraph finish() { return outputs_.finish(); }

 private:
  Ref call_with_numbers(PyObject* callable, const ForeignFunction& function, PyObject* args, PyObject* kwargs);
  Ref leaf(PyObject* callable, PyObject* args, PyObject* kwargs);
  Ref at_index_tensors(PyObject* args);
  void require_no_example() const {
    if (batches_.any()) throw GraphBreak("torch.vmap of a function that asks for elements");
  }
  bool tracks_reals(std::span<const Ref> arguments) const;
  Ref drawing(const ForeignFunction& function, std::span<const Ref> arguments);

  RecordedGraph core_;
  int index_modes_ = 0;  // entered and not left: subscripts by tensors without dimensions are none by numbers
  ArrayWork array_work_;
  RecordedInputs inputs_;
  History history_;
  KnownValues known_{core_};
  RecordedTrace trace_{core_, known_, position};
  Assumptions assumptions_{core_, truth_to_come};

  FloatSteps floats_{core_, inputs_};
  ComputedNumbers computed_{core_, floats_, assumptions_, trace_};
  RecordedTexts texts_{core_, inputs_};
  ScalarArithmetic arithmetic_{core_, floats_, computed_, texts_};
  ScalarFunctions scalar_functions_{core_, floats_, computed_};
  KnownElements known_elements_{core_, known_, floats_, arithmetic_};
  ElementNumbers element_numbers_{core_, history_, known_, known_elements_, computed_, arithmetic_};
  NumberInputs number_inputs_{core_, inputs_, floats_, texts_};

  RecordedResults results_{core_};
  LateViews late_views_{core_, results_};
  LateSizes late_sizes_{core_, results_, late_views_};
  MetadataAnswers metadata_{core_, results_, late_sizes_};
  WrittenMemory memory_{core_, inputs_, late_sizes_};

  OpaqueCalls opaque_{core_, history_, known_, trace_, computed_, results_, late_sizes_, before_it_may_warn};
  RandomCalls random_{core_, opaque_};
  OpaqueWrites opaque_writes_{core_, inputs_, trace_, late_sizes_, memory_, opaque_};

  RecordedConstants constants_{core_, trace_, opaque_};
  OpCalls op_calls_{core_, history_, trace_, computed_, results_, late_sizes_, late_views_, memory_, opaque_, random_};
  RecordedWrites writes_{core_, inputs_, history_, trace_, results_, late_sizes_, late_views_, memory_, opaque_writes_, constants_, op_calls_};
  RecordedCalls calls_{core_, history_, *this, known_, late_sizes_, opaque_, opaque_writes_, constants_, op_calls_, writes_, results_};
  RecordedCrossings crossings_{core_, trace_, *this};
  RecordedBranches branches_{core_, inputs_, trace_};
  RecordedBatches batches_{core_, branches_, *this};
  RecordedGradients gradients_{core_, inputs_, history_, results_, trace_};
  RecordedFunctions functions_{core_, inputs_, history_, trace_, gradients_};
  RecordedOutputs outputs_{core_, inputs_, trace_, assumptions_, late_views_, opaque_, gradients_};
};

}  // namespace tenon::python
