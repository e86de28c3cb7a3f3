#include "python/call/cache_entry.h"

#include <fmt/format.h>

#include "python/call/errors.h"
#include "python/call/session.h"
#include "python/call/small_array.h"
#include "python/evaluator/graph_break.h"
#include "python/tensors/array_results.h"
#include "python/tensors/torch_library.h"
#include "python/tensors/torch_results.h"

namespace tenon::python {
namespace {

// From this much memory on a plan takes more than about 20 µs: other Python threads may run meanwhile.
constexpr std::size_t kBytesOfALongPlan = 256 * 1024;

std::size_t byte_count(DType dtype, const Extents& shape) {
  std::size_t bytes = size_of(dtype);
  for (std::int64_t extent : shape) bytes *= static_cast<std::size_t>(extent);
  return bytes;
}

bool is_long(const CapturedGraph& captured) {
  std::size_t bytes = 0;
  for (const TensorSpec& input : captured.inputs) bytes += byte_count(input.dtype, input.shape);
  for (const TensorOutput& output : captured.tensors) bytes += byte_count(output.dtype, output.shape);
  return bytes >= kBytesOfALongPlan;
}

struct alignas(16) Scratch {
  unsigned char bytes[16];
};

/// Holds references for the time of a run.
template <std::size_t kInline>
class Objects {
 public:
  explicit Objects(std::size_t size) : x_items(size) {
    for (std::size_t i = 0; i < size; ++i) x_items[i] = nullptr;
  }
  ~Objects() {
    for (std::size_t i = 0; i < x_items.size(); ++i) Py_XDECREF(x_items[i]);
  }
  Objects(const Objects&) = delete;
  Objects& operator=(const Objects&) = delete;
  PyObject*& operator[](std::size_t i) { return x_items[i]; }
  PyObject** data() { return x_items.data(); }
  std::size_t size() const { return x_items.size(); }

 private:
  SmallArray<PyObject*, kInline> x_items;
};

}  // namespace

struct CacheEntry::Frame {
  explicit Frame(const CacheEntry& entry)
      : inputs(entry.x_captured.inputs.size()),
        tensors(entry.x_captured.tensors.size()),
        input_data(entry.x_captured.inputs.size()),
        output_data(entry.x_output_count),
        input_scratch(entry.x_captured.inputs.size()),
        output_scratch(entry.x_output_count) {}

  Objects<8> inputs;                      // by graph input
  Objects<8> tensors;                     // by CapturedGraph::tensors
  SmallArray<const void*, 8> input_data;
  SmallArray<void*, 8> output_data;       // by graph output
  SmallArray<Scratch, 4> input_scratch;   // values of NumPy scalars
  SmallArray<Scratch, 4> output_scratch;
};

CacheEntry::CacheEntry(TorchState state, Segment segment, CapturedGraph captured)
    : x_state(state), x_segment(std::move(segment)), x_captured(std::move(captured)) {
  for (ir::NodeId node : x_captured.graph.nodes())
    if (x_captured.graph.node(node).op != "constant") ++x_op_count;
  x_output_count = x_captured.graph.outputs().size();
  x_runs = x_output_count > 0;
  x_release_gil = is_long(x_captured);
  for (const std::string& op : x_captured.op_names) x_uses_numpy |= op.starts_with("numpy.");
  for (ResultTemplate::Node& node : x_segment.result.nodes) {
    if (node.kind != ResultTemplate::Kind::source) continue;
    x_result_slots.push_back(node.index);
    node.index = static_cast<std::uint32_t>(x_result_slots.size() - 1);
  }
}

int CacheEntry::traverse(visitproc visit, void* arg) const {
  for (const ResultTemplate::Node& node : x_segment.result.nodes) {
    Py_VISIT(node.object.get());
    Py_VISIT(node.names.get());
  }
  Py_VISIT(x_program.callable());
  for (const TracedCall& call : x_captured.trace.calls) {
    Py_VISIT(call.callable.get());
    Py_VISIT(call.args.get());
    Py_VISIT(call.kwargs.get());
    Py_VISIT(call.result.get());
  }
  for (const Ref& input : x_captured.trace.inputs) Py_VISIT(input.get());
  for (const Ref& output : x_captured.trace.outputs) Py_VISIT(output.get());
  return x_segment.guards.traverse(visit, arg);
}

bool CacheEntry::compile(const Settings& settings, const std::string& name) {
  if (!x_runs) return true;
  std::optional<Program> program;
  if (settings.callable) {
    std::vector<PyObject*> inputs;
    for (std::uint32_t slot : x_segment.input_slots) inputs.push_back(x_segment.guards.values()[slot]);
    program = compile_with_callable(x_captured, settings, name, inputs.data());
  } else {
    program = compile_natively(x_captured, settings);
  }
  if (!program) return false;
  x_program = std::move(*program);
  return true;
}

/// Makes the objects of the results, and where the program writes them.
bool CacheEntry::make_outputs(Frame& frame) {
  for (std::size_t i = 0; i < x_captured.tensors.size(); ++i) {
    const TensorOutput& output = x_captured.tensors[i];
    if (output.kind != TensorOutput::Kind::fresh) continue;
    void*& data = frame.output_data[output.index];
    switch (output.tensor) {
      case TensorKind::torch: frame.tensors[i] = new_torch_tensor(*known_torch_library(), output.dtype, output.shape, output.strides, data); break;
      case TensorKind::array: frame.tensors[i] = new_array(output.dtype, output.shape, output.strides, data); break;
      case TensorKind::scalar: data = frame.output_scratch[output.index].bytes; continue;
    }
    if (!frame.tensors[i]) return false;
  }
  return true;
}

RunStatus CacheEntry::run_native(Frame& frame) {
  for (std::size_t i = 0; i < frame.inputs.size(); ++i)
    frame.input_data[i] = data_of(x_captured.inputs[i], frame.inputs[i], frame.input_scratch[i].bytes);
  if (!make_outputs(frame)) return RunStatus::raised;
  TenonRunArgs args{};
  args.struct_size = sizeof args;
  args.inputs = frame.input_data.data();
  args.outputs = frame.output_data.data();
  std::int32_t code = TENON_OK;
  if (x_release_gil) {
    Py_BEGIN_ALLOW_THREADS;
    code = tenon_program_run(x_program.native(), &args);
    Py_END_ALLOW_THREADS;
  } else {
    code = tenon_program_run(x_program.native(), &args);
  }
  if (code != TENON_OK) return RunStatus::refused;
  for (std::size_t i = 0; i < x_captured.tensors.size(); ++i) {
    const TensorOutput& output = x_captured.tensors[i];
    if (output.kind != TensorOutput::Kind::fresh || output.tensor != TensorKind::scalar) continue;
    frame.tensors[i] = new_array_scalar(output.dtype, frame.output_data[output.index]);
    if (!frame.tensors[i]) return RunStatus::raised;
  }
  return RunStatus::done;
}

/// The callable gives a sequence: the outputs, then the values of updates.
RunStatus CacheEntry::run_callable(Frame& frame) {
  Ref given = Ref::steal(PyObject_Vectorcall(x_program.callable(), frame.inputs.data(), frame.inputs.size(), nullptr));
  if (!given) return RunStatus::raised;
  Ref sequence = Ref::steal(PySequence_Fast(given.get(), "a compiled graph must give a tuple of its outputs"));
  if (!sequence) return RunStatus::raised;
  if (static_cast<std::size_t>(PySequence_Fast_GET_SIZE(sequence.get())) != x_output_count) {
    set_error(ErrorClass::compile, fmt::format("the compiled graph gave {} results instead of {}", PySequence_Fast_GET_SIZE(sequence.get()), x_output_count));
    return RunStatus::raised;
  }
  for (std::size_t i = 0; i < x_captured.tensors.size(); ++i)
    if (x_captured.tensors[i].kind == TensorOutput::Kind::fresh)
      frame.tensors[i] = Py_NewRef(PySequence_Fast_GET_ITEM(sequence.get(), static_cast<Py_ssize_t>(x_captured.tensors[i].index)));
  return RunStatus::done;
}

/// Makes the views among the results; what they view has been made.
bool CacheEntry::finish_tensors(Frame& frame) {
  try {
    for (std::size_t i = 0; i < x_captured.tensors.size(); ++i) {
      const TensorOutput& output = x_captured.tensors[i];
      if (output.kind == TensorOutput::Kind::fresh) continue;
      const bool of_input = output.kind == TensorOutput::Kind::input_view;
      PyObject* base = of_input ? frame.inputs[output.index] : frame.tensors[output.index];
      if (output.tensor == TensorKind::torch) {
        Ref offset = checked(PyObject_CallMethod(base, "storage_offset", nullptr));
        const std::int64_t first = PyLong_AsLongLong(offset.get());
        frame.tensors[i] = torch_view(*known_torch_library(), base, output.shape, output.strides, first + output.offset).release();
      } else {
        frame.tensors[i] = array_view(base, output.shape, output.strides, output.offset, output.writeable).release();
      }
    }
    return true;
  } catch (const PythonError&) {
    return false;
  }
}

RunStatus CacheEntry::run(Ref& result) {
  Frame frame(*this);
  PyObject* const* values = x_segment.guards.values();
  for (std::size_t i = 0; i < frame.inputs.size(); ++i) frame.inputs[i] = Py_NewRef(values[x_segment.input_slots[i]]);
  Objects<8> kept(x_result_slots.size());  // another thread may check the same guards while this one runs
  for (std::size_t i = 0; i < kept.size(); ++i) kept[i] = Py_NewRef(values[x_result_slots[i]]);
  if (x_runs) {
    const RunStatus status = x_program.callable() ? run_callable(frame) : run_native(frame);
    if (status != RunStatus::done) return status;
  }
  if (!finish_tensors(frame)) return RunStatus::raised;
  Objects<8> outputs(x_captured.outputs.size());
  for (std::size_t i = 0; i < outputs.size(); ++i) outputs[i] = Py_NewRef(frame.tensors[x_captured.outputs[i]]);
  try {
    result = x_segment.result.build(kept.data(), outputs.data());
    return RunStatus::done;
  } catch (const PythonError&) {
    return RunStatus::raised;
  }
}

}  // namespace tenon::python
