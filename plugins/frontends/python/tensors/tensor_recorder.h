// Records what a captured program does with tensors and arrays.
#pragma once

#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "core/ops/node_builder.h"
#include "python/evaluator/recorder.h"
#include "python/tensors/captured_graph.h"
#include "python/tensors/foreign_names.h"
#include "python/tensors/torch_state.h"

namespace tenon::python {

/// The recorder of one capture. While it lives, stand-ins of the same thread record into it.
///
/// Shapes, dtypes and values come from the catalogue; strides and sharing of memory from eager's rule for pointwise results, else from
/// the library itself, run on twins. Where the two disagree about shape or dtype the capture breaks.
class TensorRecorder final : public Recorder {
 public:
  explicit TensorRecorder(const TorchState& state);
  ~TensorRecorder() override;
  TensorRecorder(const TensorRecorder&) = delete;
  TensorRecorder& operator=(const TensorRecorder&) = delete;

  /// The recorder that stand-ins of this thread record into. Throws GraphBreak when there is none: a stand-in has escaped its capture.
  static TensorRecorder& active();

  Role role(PyTypeObject* type) override;
  Ref input(PyObject* real, SourceId source, GuardSet& guards) override;
  PyTypeObject* apparent_type(PyObject* stand_in) override;
  bool takes(PyObject* callable) override;
  Ref call(PyObject* callable, PyObject* args, PyObject* kwargs) override;
  std::uint32_t output(PyObject* stand_in) override;
  SourceId input_source(PyObject* stand_in) override;

  /// Ends the recording. Stand-ins are dead afterwards, but for the keys of the trace.
  CapturedGraph finish();

 private:
  struct StandIn {
    Ref object;
    TensorKind kind = TensorKind::torch;
    ir::ValueId value;
    DType dtype = DType::f32;
    Extents shape, strides;
    bool writeable = true;
    bool requires_grad = false;
    PyTypeObject* type = nullptr;       // as the program sees it
    std::optional<std::uint32_t> input;
    SourceId source;
    std::uint32_t storage = 0;          // index into x_storages
    std::int64_t offset = 0;            // elements from the storage's first stand-in's first element
    Ref twin;                           // made when needed
  };
  /// The stand-ins that share memory; the first one made it.
  struct Storage {
    std::uint32_t first = 0;
    const void* address = nullptr;      // of the first one's twin
    std::int64_t first_offset = 0;      // of the first one's first element in the twin's storage
  };
  using Index = std::uint32_t;

  std::optional<Index> find(PyObject* object) const;
  Index require(PyObject* object) const;
  Index add(StandIn stand_in);
  Index add_fresh(TensorKind kind, ir::ValueId value, const TensorSpec& spec);
  Ref make_object(const StandIn& stand_in);
  PyObject* twin(Index index);
  Ref with_twins(PyObject* object);

  // the classes of calls
  Ref answer_metadata(PyObject* callable, const ForeignFunction& function, PyObject* args, PyObject* kwargs);
  Ref record(PyObject* callable, const ForeignFunction& function, PyObject* args, PyObject* kwargs);
  Ref fold(PyObject* callable, PyObject* args, PyObject* kwargs);
  Ref constant(PyObject* array);

  ops::ForeignResult build(const ForeignFunction& function, PyObject* args, PyObject* kwargs);
  bool strides_are_known(const ForeignFunction& function, const ops::ForeignResult& result, std::span<const Index> operands) const;
  TensorSpec fresh_spec(const ForeignFunction& function, ir::ValueId value, std::span<const Index> operands) const;
  Ref wrap_fresh(const ForeignFunction& function, const ops::ForeignResult& result, std::span<const Index> operands);
  Ref wrap_like_twins(PyObject* callable, const ForeignFunction& function, const ops::ForeignResult& result, PyObject* args, PyObject* kwargs);
  Ref stand_in_for_twin(PyObject* twin, ir::ValueId value, const ForeignFunction& function);
  std::vector<Index> operands_of(PyObject* args, PyObject* kwargs) const;
  void collect(PyObject* object, std::vector<Index>& found) const;
  std::optional<ir::ValueId> value_of(PyObject* object, ops::Flavour flavour);
  void trace(PyObject* callable, const ForeignFunction& function, PyObject* args, PyObject* kwargs, const Ref& result, std::size_t first_node);
  void resolve_places();

  std::uint32_t tensor_output(Index index, CapturedGraph& captured);
  std::uint32_t fresh_output(Index index, CapturedGraph& captured);

  TorchState x_state;
  TensorRecorder* x_outer = nullptr;  // of a capture that this one interrupts
  ir::Graph x_graph;
  ops::NodeBuilder x_builder;
  std::vector<StandIn> x_stand_ins;
  std::vector<Storage> x_storages;
  std::unordered_map<PyObject*, Index> x_by_object;
  std::unordered_map<PyObject*, Index> x_by_twin;
  std::vector<Index> x_inputs;
  std::vector<TensorSpec> x_input_specs;
  std::vector<Ref> x_input_objects;
  std::vector<Index> x_outputs;        // by `output` number
  std::unordered_map<Index, std::uint32_t> x_made;  // stand-in -> index into CapturedGraph::tensors
  Trace x_trace;
  std::vector<std::string> x_op_names;
  /// Where a call was made: looked up in the source when the capture has ended, since that may read files.
  struct Place {
    Ref code;
    int byte_offset = 0;
    std::size_t first_node = 0, last_node = 0;
    std::size_t call = 0;
  };
  std::vector<Place> x_places;
};

}  // namespace tenon::python
