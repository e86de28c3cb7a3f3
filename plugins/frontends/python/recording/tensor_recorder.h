// Records what a captured program does with tensors and arrays.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/ops/build/node_builder.h"
#include "core/ops/foreign/foreign_writes.h"
#include "python/foreign/foreign_names.h"
#include "python/graph/captured_graph.h"
#include "python/guards/recorder.h"
#include "python/library/torch_state.h"
#include "python/recording/graph/assumptions.h"
#include "python/recording/graph/known_values.h"
#include "python/recording/graph/recorded_graph.h"
#include "python/recording/graph/recorded_inputs.h"
#include "python/recording/graph/recorded_trace.h"
#include "python/recording/recorded_branches.h"
#include "python/stand_ins/array_stand_in.h"
#include "python/stand_ins/present_values.h"
#include "python/stand_ins/stand_in_uses.h"
#include "python/stand_ins/stand_ins.h"
#include "python/stand_ins/symbolic_scalar.h"
#include "python/symbols/symbols.h"

namespace tenon::python {

/// The recorder of one capture. While it lives, stand-ins of the same thread record into it.
///
/// Shapes, dtypes and values come from the catalogue; strides and sharing of memory from eager's rule for pointwise results, else from
/// the library itself, run on twins. Where the two disagree about shape or dtype the capture breaks.
class TensorRecorder final : public Recorder, public StandInUses {
 public:
  using Numbers = RecordedGraph::Numbers;
  /// `freeze`: parameters and buffers that the program does not write are the same at each call, under guards.
  TensorRecorder(const TorchState& state, Numbers numbers, bool freeze = false);

  Role role(PyTypeObject* type) override;
  Ref input(PyObject* real, SourceId source, GuardSet& guards) override { return inputs_.add(real, source, guards); }
  Ref number(PyObject* object, SourceId source, GuardSet& guards) override;
  Ref length_at(SourceId source, std::int64_t length, GuardSet& guards) override;
  bool length_wears_out(SourceId source, std::int64_t length, GuardSet& guards) override;
  bool items_keep_varying(SourceId source, GuardSet& guards) override;
  bool rounds_keep_varying(std::span<const Ref> bounds) override;
  void counts(SourceId source, PyObject* count, PyObject* next, GuardSet& guards) override;
  Ref plain_number(PyObject* number) override;
  bool hash_unguarded(bool unguarded) override { return std::exchange(symbols_.hashes_unguarded, unguarded); }
  Ref late_text(PyObject* function, PyObject* arguments) override;
  std::optional<LateCall> late_call(PyObject* stand_in) override;
  Ref constant_operator(binaryfunc operation, PyObject* left, PyObject* right) override;
  std::optional<VaryingPlace> place_of(PyObject* number) override;
  bool may_be_chosen(PyObject* object) override;
  Ref number_of(PyObject* stand_in, PyTypeObject* type) override;
  Ref number_in_format(PyObject* stand_in, PyObject* spec) override;
  std::optional<bool> truth_of(PyObject* stand_in) override { return known_.truth(stand_in); }
  bool assume(PyObject* stand_in, bool truth) override { return assumptions_.assume(stand_in, truth); }
  std::optional<bool> assumed_comparison(int operation, PyObject* a, PyObject* b);
  std::optional<bool> assumed_answer(std::string_view question, PyObject* number);
  Ref length(PyObject* stand_in) override;
  std::shared_ptr<NumbersGuard> numbers() override { return symbols_.guard(); }
  PyTypeObject* apparent_type(PyObject* stand_in) override;
  bool is_one_object_a_value(PyTypeObject* type) const override;
  bool takes(PyObject* callable) override;
  std::span<PyObject* const> hooks() const override;
  bool is_own(PyObject* found) override;
  bool is_own_class(PyObject* type) override;
  bool operates_on_any(PyObject* stand_in) const override { return Py_TYPE(stand_in) == array_stand_in_type(); }
  PyObject* written_in_python(PyObject* callable) override;
  std::size_t recorded() const override { return graph_.nodes().size(); }
  Pieces pieces_of(PyObject* callable) override;
  Ref call(PyObject* callable, PyObject* args, PyObject* kwargs) override;
  std::uint32_t output(PyObject* stand_in) override;
  SourceId input_source(PyObject* stand_in) override;
  void begin_branch() override { branches_.begin(); }
  void end_branch(std::span<PyObject* const> results) override { branches_.end(results); }
  std::vector<Ref> choose(PyObject* function, PyObject* predicate) override { return branches_.choose(function, predicate); }
  void enter_error_state(PyObject* modes) override;
  void leave_error_state() override { core_.error_handlings.leave(graph_); }

  Ref scalar_arithmetic(FloatTape::Op op, PyObject* a, PyObject* b) override;
  Ref scalar_magnitude(PyObject* a) override;
  Ref whole_number(PyObject* number, std::string_view function) override;
  Ref scalar_function(PyObject* callable, PyObject* args);
  Ref rounded(PyObject* number, PyObject* digits) override;
  bool scalar_comparison(int operation, PyObject* a, PyObject* b) override;
  Ref float_arithmetic(FloatTape::Op op, PyObject* a, PyObject* b) override;
  [[noreturn]] void need_scalar(const ScalarValue& scalar, const char* use) override;
  [[noreturn]] void need_text(PyObject* text, const char* use) override;

  /// Whether the capture must be repeated from what this one has found out about numbers.
  bool learned() const { return symbols_.learned(); }
  bool has_symbols() const { return symbols_.any() || any_text_input_; }
  bool breaks_for_number() const { return symbols_.broke(); }
  /// Ends the recording. Stand-ins are dead afterwards, but for the keys of the trace.
  CapturedGraph finish();

 private:
  using Index = StandIns::Index;

  // from one library to the other
  std::optional<Ref> record_crossing(PyObject* callable, const ForeignFunction& function, PyObject* args, PyObject* kwargs);
  Ref crossed(Index index, bool copied);
  Ref tensor_from_array(const ForeignFunction& function, Index array, PyObject* args, PyObject* kwargs);
  Ref tensor_from_scalar(PyObject* callable, const ForeignFunction& function, Index scalar);
  Ref with_arrays(PyObject* arguments);
  std::optional<Ref> tensor_from_scalars(PyObject* callable, const ForeignFunction& function, PyObject* list, PyObject* dtype);
  std::optional<Ref> record_array_index(PyObject* callable, PyObject* args, PyObject* kwargs);
  Ref tensor_of_indices(PyObject* array, bool alone);

  // calls on lists of tensors
  std::optional<Ref> record_each(const ForeignFunction& function, PyObject* args, PyObject* kwargs);
  bool are_alike(PyObject* args, PyObject* kwargs) const;

  // the classes of calls
  Ref item_of_constant(PyObject* args);
  std::optional<Ref> answer_size(std::string_view name, const StandIn& self, PyObject* args, PyObject* kwargs);
  Ref size_tuple(ops::Flavour flavour, std::span<const ir::Dim> shape);
  void fix_numbers_in(PyObject* object);
  void fix_sizes(std::span<const Index> operands);
  std::optional<Ref> answer_sharing(PyObject* args, PyObject* kwargs);
  Ref answer_metadata(PyObject* callable, const ForeignFunction& function, PyObject* args, PyObject* kwargs);
  Ref record_with_numbers(PyObject* callable, const ForeignFunction& function, PyObject* args, PyObject* kwargs);
  Ref record(PyObject* callable, const ForeignFunction& function, PyObject* args, PyObject* kwargs);
  std::optional<Ref> record_under_autocast(PyObject* callable, const ForeignFunction& function, PyObject* args, PyObject* kwargs);
  Ref with_casts(PyObject* arguments, PyObject* casts, Py_ssize_t& next);
  Ref split_by_expressions(const ForeignFunction& function, PyObject* args, PyObject* kwargs);
  Ref record_as_is(PyObject* callable, const ForeignFunction& function, PyObject* args, PyObject* kwargs);
  Ref record_reading(PyObject* callable, const ForeignFunction& function, PyObject* args, PyObject* kwargs, std::span<const Index> operands);
  /// What is particular about an opaque call.
  struct OpaqueUse {
    bool random = false;           // keeps its place among the calls that take random numbers
    std::optional<Index> written;  // the call changes this argument in place and gives it
    Ref twin_kwargs;               // keyword arguments for the call on twins, where they are others
    ir::ValueId value;             // given back: the new value of what is written
    Ref answer;                    // what the call gives for the twins, where they are not asked
    std::vector<Index> declared;   // arguments that the function says it writes, besides what it gives
    std::vector<ir::ValueId> left; // given back: the new values of these
    std::optional<std::vector<ir::Shape>> shapes;  // of the results, where sizes depend on data
  };
  Ref record_opaque(PyObject* callable, const ForeignFunction& function, PyObject* args, PyObject* kwargs);
  Ref record_opaque(PyObject* callable, const ForeignFunction& function, PyObject* args, PyObject* kwargs, OpaqueUse& use);
  std::optional<std::vector<ir::Shape>> shapes_of_opaque_call(PyObject* callable, const ForeignFunction& function, std::span<const Index> operands, PyObject* args,
                                                              PyObject* kwargs, const OpaqueUse& use, std::span<const Ref> results);
  Ref with_floats(PyObject* arguments, double factor);
  std::int64_t elements_of_operands(std::span<const Index> operands) const;
  using OtherSize = std::int64_t (*)(std::int64_t size, std::size_t which);
  std::optional<std::vector<ir::Shape>> shapes_by_trials(PyObject* callable, const ForeignFunction& function, std::span<const Index> operands, PyObject* args,
                                                              PyObject* kwargs, const OpaqueUse& use, std::span<const Ref> results, OtherSize change);
  std::vector<Index> declared_writes(PyObject* schema, const ForeignFunction& function, PyObject* args, PyObject* kwargs) const;
  std::optional<Ref> record_declared_writes(PyObject* callable, const ForeignFunction& function, PyObject* args, PyObject* kwargs);
  std::vector<ir::ValueId> add_opaque_node(const std::string& target, std::shared_ptr<OpaqueCall> call, std::vector<ir::ValueId> values,
                                           std::vector<ir::Type> types, OpaqueUse& use);
  Ref call_on_twins(PyObject* callable, const ForeignFunction& function, std::span<const Index> operands, PyObject* args, PyObject* kwargs,
                    const OpaqueUse& use);
  Ref call_on_twins_with_number(PyObject* callable, std::span<const Index> operands, PyObject* twin_args, PyObject* twin_kwargs);
  void require_written_twin(PyObject* answer, const ForeignFunction& function, Index written) const;
  MemoryOrder drawing_order(Index index, const ForeignFunction& function, const OpaqueUse& use) const;
  Ref with_strides_of_draw(Ref answer, PyObject* callable, std::span<const Index> operands, PyObject* args, PyObject* kwargs);
  Ref record_random(PyObject* callable, const ForeignFunction& function, PyObject* args, PyObject* kwargs);
  ir::ValueId value_by_opaque_call(PyObject* callable, const ForeignFunction& function, Index target, PyObject* args, PyObject* kwargs);
  ir::ValueId value_by_numpy_call(PyObject* callable, const ForeignFunction& function, Index target, PyObject* args, PyObject* kwargs);
  Ref wrap_late(const ForeignFunction& function, ir::ValueId value, std::span<const Index> operands);
  Ref record_found(PyObject* callable, const ForeignFunction& function, PyObject* args, PyObject* kwargs, std::span<const Index> operands);
  Ref record_late_opaque(PyObject* callable, const ForeignFunction& function, PyObject* args, PyObject* kwargs, std::span<const Index> operands);
  Ref fold(PyObject* callable, PyObject* args, PyObject* kwargs);
  Ref library_makes(PyObject* callable, const ForeignFunction& function, PyObject* args, PyObject* kwargs);
  Ref constant(PyObject* array);

  /// A call that writes: what to compute, and where it goes.
  struct WritingCall {
    enum class Kind : std::uint8_t {
      none,    // out=None: writes nothing
      output,  // the result of the call with `args` and `kwargs` goes to `target`
      itself,  // an in-place function, whose result is the new value of its first argument
    };
    Ref args, kwargs, target;
    Kind kind = Kind::none;
  };
  static std::optional<WritingCall> as_writing_call(PyObject* callable, const ForeignFunction& function, PyObject* args, PyObject* kwargs);
  Ref record_write(PyObject* callable, const ForeignFunction& function, PyObject* args, PyObject* kwargs, const WritingCall& call);
  Ref written_result(PyObject* callable, const ForeignFunction& function, Index target, const WritingCall& call);
  void record_writes_beside(const ForeignFunction& function, std::span<const ops::ForeignWrite> writes, std::span<const Index> operands);
  Index written_operand(const ForeignFunction& function, ir::ValueId before, std::span<const Index> operands);
  bool write_part(const ForeignFunction& function, Index whole, PyObject* index, PyObject* value);
  ir::ValueId written_value(const ForeignFunction& function, Index target, ir::ValueId value);
  Ref in_complex(PyObject* number, TensorKind kind, DType dtype);
  ir::ValueId new_value(PyObject* callable, const ForeignFunction& function, Index target, const WritingCall& call);
  bool same_places(Index a, Index b) const;
  void require_writable(Index index) const;
  void require_apart(const ForeignFunction& function, Index target, std::span<const Index> operands, bool all);
  void require_shape_of(Index target, ir::ValueId value, const ForeignFunction& function);
  /// Results or operands of which a size depends on data.
  bool late_layout_varies(std::span<const Index> operands) const;
  void refuse_late(std::span<const Index> operands) const;
  void refuse_late(const ForeignFunction& function, std::span<const Index> operands) const;
  Ref record_late(const ForeignFunction& function, PyObject* kwargs, const ops::ForeignResult& result, std::span<const Index> operands, std::size_t first_node);
  TensorSpec late_spec(const ForeignFunction& function, ir::ValueId value, std::span<const Index> operands, bool known);
  void require_one_order(const ForeignFunction& function, ir::ValueId value, std::span<const Index> operands, const TensorSpec& made);
  const ViewLayout& late_layout(Index index);
  bool shows_late_memory(const ForeignFunction& function, PyObject* kwargs, const ops::ForeignResult& result, std::span<const Index> operands) const;
  bool views(ir::ValueId from, ir::ValueId to) const;
  std::vector<SymbolId> late_symbols(const ir::Shape& shape) const;
  void require_several(const ir::Shape& shape);
  void require_elements(const ir::Shape& shape);
  void require_one_layout(Index index, std::span<const Index> operands);
  bool is_alike_at_one(PyObject* callable, const ForeignFunction& function, PyObject* args, PyObject* kwargs, std::span<const Index> made);
  Ref record_late_views(PyObject* callable, const ForeignFunction& function, const ops::ForeignResult& result, PyObject* args, PyObject* kwargs);
  void vary_late_view(TensorOutput& output, Index index);

  bool stays_inside(const ForeignFunction& function, PyObject* args, PyObject* kwargs) const;
  bool numpy_may_give_view(const ForeignFunction& function, std::size_t first_node, const ops::ForeignResult& result, std::span<const Index> operands) const;
  void find_hidden_bases(PyObject* wrapped, PyObject* callable, PyObject* args, PyObject* kwargs);
  bool lie_unusually(std::span<const Index> operands) const;
  Ref as_the_cpu_lays_out(Ref answer, PyObject* callable, PyObject* args, PyObject* kwargs, const ops::ForeignResult& result);
  bool shares_memory(PyObject* callable, const ForeignFunction& function, PyObject* args, PyObject* kwargs, std::span<const Index> operands);
  bool may_be_view(std::size_t first_node, const ops::ForeignResult& result, std::span<const Index> operands);
  std::optional<ops::ForeignResult> build_op(const ForeignFunction& function, PyObject* args, PyObject* kwargs, const std::string& not_opaque);
  ops::ForeignResult build(const ForeignFunction& function, PyObject* args, PyObject* kwargs);
  void compute_in(std::span<const DType> loop, ops::ForeignCall& call);
  void require_runnable(const ForeignFunction& function, std::size_t first_node) const;
  void require_complex_elements(const ForeignFunction& function, std::span<const ir::ValueId> values) const;
  std::optional<ops::AliasLayout> own_layout(const ForeignFunction& function, ir::ValueId value) const;
  bool strides_are_known(const ForeignFunction& function, const ops::ForeignResult& result, std::span<const Index> operands) const;
  bool has_number_operand(const ForeignFunction& function, ir::ValueId value) const;
  std::vector<Operand> as_computed_with(const ForeignFunction& function, ir::ValueId value, std::vector<Operand> operands) const;
  TensorSpec fresh_spec(const ForeignFunction& function, ir::ValueId value, std::span<const Index> operands) const;
  Ref wrap_fresh(const ForeignFunction& function, const ops::ForeignResult& result, std::span<const Index> operands);
  Ref wrap_like_twins(PyObject* callable, const ForeignFunction& function, const ops::ForeignResult& result, PyObject* args, PyObject* kwargs);
  Ref wrap_answer(PyObject* answer, const ForeignFunction& function, std::span<const ir::ValueId> values, std::span<const Index> operands);
  Ref stand_in_for_twin(PyObject* twin, ir::ValueId value, const ForeignFunction& function, std::span<const Index> operands);
  void find_viewed(StandIn& view, std::span<const Index> operands);
  std::optional<ir::Shape> strides_of(Index index) const;
  void settle_layout(StandIn& view, Index viewed, std::optional<ir::ValueId> from);
  std::optional<Ref> answer_strides(std::string_view name, Index index, PyObject* args, PyObject* kwargs);
  /// `weak`: numbers have no say about the dtype.
  std::optional<ir::ValueId> value_of(PyObject* object, ops::Flavour flavour, bool weak = true);

  bool shows_parts(Index index) const;
  std::uint32_t parts_output(Index index, CapturedGraph& captured);
  void add_updates(CapturedGraph& captured);
  bool is_written_by_graph(std::uint32_t input) const;
  void name_copies(CapturedGraph& captured);
  void vary_view(TensorOutput& output, const StandIn& view, const StandIn& base);
  std::string name_of_length(SourceId source, GuardSet& guards);
  std::optional<ir::ValueId> number_operand(PyObject* object);
  Ref float_input(PyObject* object, SourceId source, GuardSet& guards);
  Ref text_input(PyObject* object, SourceId source, GuardSet& guards);
  std::optional<FloatTape::Position> step_of(PyObject* number, std::vector<std::string>& roots);
  Ref on_tape(FloatTape::Step step, std::vector<std::string> roots);
  Ref call_on_tape(PyObject* callable, std::string_view name, PyObject* args);
  Ref tape_arithmetic(FloatTape::Op op, PyObject* a, PyObject* b);
  ir::ValueId input_of(FloatTape::Position step);
  ir::ValueId value_of_scalar(const ScalarValue& scalar) { return scalar.step ? input_of(*scalar.step) : scalar.value; }
  std::optional<ir::ValueId> bounded_int(PyObject* number, std::int64_t most, ScalarValue& result);
  ir::ValueId scalar_operand(PyObject* object, ScalarValue& result);
  ir::ValueId float_operand(PyObject* object, ScalarValue& result);
  ir::ValueId where_finite(ir::ValueId number);
  Ref extreme_of_ints(PyObject* args, bool least);
  Ref scalar_extreme(PyObject* args, bool least);
  ir::ValueId weak_operand(const ScalarValue& scalar, ops::Flavour flavour, std::span<const Index> tensors);
  Ref computed_number(ScalarValue value, const char* module, const char* function, const Ref& args);
  std::uint32_t scalar_output(const ScalarValue& scalar, PyObject* object, CapturedGraph& captured);
  std::uint32_t number_output(PyObject* number, CapturedGraph& captured);
  ir::ValueId value_of_view(Index index);
  std::uint32_t tensor_output(Index index, CapturedGraph& captured);
  std::uint32_t fresh_output(Index index, CapturedGraph& captured);
  std::uint32_t crossed_output(Index index, CapturedGraph& captured);

  RecordedGraph core_;
  ir::Graph& graph_ = core_.graph;
  ops::NodeBuilder& builder_ = core_.builder;
  Symbols& symbols_ = core_.symbols;
  StandIns& stand_ins_ = core_.stand_ins;
  PresentValues& present_ = core_.present;
  RecordedInputs inputs_;
  KnownValues known_;
  RecordedTrace trace_;
  Assumptions assumptions_;
  RecordedBranches branches_{core_, inputs_, trace_};
  std::unordered_map<std::uint32_t, Ref> floats_;  // by source: symbolic scalars that were read there
  bool any_text_input_ = false;                    // a str that varies was read
  std::unordered_map<FloatTape::Position, ir::ValueId> step_inputs_;
  std::vector<Index> operands_;                    // tensors of the call that is being recorded
  std::vector<Ref> outputs_;          // by `output` number: stand-ins of tensors and of ints
  std::unordered_map<PyObject*, std::uint32_t> output_numbers_;
  std::unordered_map<Index, std::uint32_t> made_;  // stand-in -> index into CapturedGraph::tensors
  std::vector<std::shared_ptr<OpaqueCall>> opaque_calls_;
};

}  // namespace tenon::python
