// What one capture recorded: the graph, its inputs and outputs as Python sees them, and the calls it was made of.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/ir/graph.h"
#include "python/heap/ref.h"
#include "python/tensors/strides.h"
#include "python/tensors/tensor_spec.h"

namespace tenon::python {

/// How one tensor that leaves a segment is made. Extents in elements.
struct TensorOutput {
  enum class Kind : std::uint8_t {
    fresh,       // graph output `index`, in memory of its own
    input_view,  // a view of the object given as input `index`
    fresh_view,  // a view of the tensor made for `index` of `CapturedGraph::tensors`, which comes earlier
  };
  Kind kind = Kind::fresh;
  TensorKind tensor = TensorKind::torch;
  std::uint32_t index = 0;
  bool writeable = true;
  DType dtype = DType::f32;
  Extents shape, strides;
  std::int64_t offset = 0;  // views: from the first element of what is viewed
};

/// One call of a torch or NumPy callable as the program made it. Stand-ins among the arguments and results are keys of values.
struct TracedCall {
  Ref callable, args, kwargs, result;  // kwargs may be empty
  ir::Location location;
};

/// The calls of a capture, to run them again without any backend, or to give them to torch.fx.
struct Trace {
  std::vector<Ref> inputs;   // stand-ins, by graph input
  std::vector<TracedCall> calls;
  std::vector<Ref> outputs;  // stand-ins, by graph output
  std::unordered_map<PyObject*, std::string> types;  // of each stand-in, as text: "f32[3, 3]"
};

/// The result of a capture, without its guards.
struct CapturedGraph {
  ir::Graph graph;
  std::vector<TensorSpec> inputs;       // by graph input
  std::vector<TensorOutput> tensors;    // in the order in which they are made
  std::vector<std::uint32_t> outputs;   // by `Recorder::output` number: index into `tensors`
  Trace trace;
  std::vector<std::string> op_names;    // of the recorded calls, in order: "torch.sin"
};

}  // namespace tenon::python
