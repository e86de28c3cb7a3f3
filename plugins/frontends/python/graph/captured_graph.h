// What one capture recorded: the graph, its inputs and outputs as Python sees them, and the calls it was made of.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/ir/graph.h"
#include "python/graph/frozen_tensor.h"
#include "python/graph/segment_gradients.h"
#include "python/library/error_handling.h"
#include "python/metadata/strides.h"
#include "python/metadata/tensor_spec.h"
#include "python/objects/ref.h"
#include "python/opaque/opaque_call.h"
#include "python/results/twins.h"
#include "python/symbols/number_check.h"

namespace tenon::python {

/// How one tensor that leaves a segment is made. Extents in elements.
struct TensorOutput {
  enum class Kind : std::uint8_t {
    fresh,       // graph output `index`, in memory of its own
    input_view,  // a view of the object given as input `index`
    fresh_view,  // a view of the tensor made for `index` of `CapturedGraph::tensors`, which comes earlier
    input_crossed,  // the whole of the object given as input `index`, as an object of the other library
    fresh_crossed,  // likewise of the tensor made for `index` of `CapturedGraph::tensors`
    number,      // an int: the value of `varying_shape[0]`
    tape_float,  // a float: step `index` of the tape in `CapturedGraph::numbers`
    given,       // of gradients of gradients: given as input `index`, and no result
    unseen,      // of gradients: a value that only nodes know, between two of them; nothing is made of it
  };
  Kind kind = Kind::fresh;
  TensorKind tensor = TensorKind::torch;
  std::uint32_t index = 0;
  bool writeable = true;
  bool inference = false;     // torch tensors: made in inference mode
  bool late = false;          // fresh: a size depends on data
  bool requires_grad = false; // torch tensors: a part of torch's autograd graph
  bool spent = false;         // then: of one that was walked through and let go
  std::string refusal = {};   // of gradients with a history: what torch says where they are differentiated; empty where they can be
  bool refusal_ends = false;  // then: nothing lies behind it in torch's graph, so that only a walk to all leaves comes to it
  bool refusal_beside = false;  // then: other gradients go by it, which a walk to named inputs gives
  bool plain_number = false;  // fresh scalars: a Python float or int, not a NumPy scalar
  DType dtype = DType::f32;
  Extents shape, strides;
  std::optional<HiddenBase> base;  // fresh: a view of an object that nobody has
  std::int64_t offset = 0;  // views: from the first element of what is viewed
  ir::ValueId value;        // what it holds, views too; none where no value of the graph does
  bool parts = false;       // views: the elements are parts of the complex ones that are viewed, or these are theirs; counted as what the result has
  std::optional<std::uint32_t> through;  // views: `CapturedGraph::tensors` from which they are made, a view of the same
  Detached detached = Detached::no;  // views
  bool untracked = false;            // views: made where grad mode was off
  bool one_of_several = false;       // views: one call gave several, through which torch refuses writes that need gradients
  std::uint32_t writes = 0; // fresh and crossed torch tensors: what eager execution leaves in `_version`
  /// Sizes over the symbols of the graph, where some vary (then `shape`, `strides` and `offset` are those of the captured call). With them,
  /// of fresh ones the order, outermost first, in which the dimensions lie in memory; of views strides and offset.
  ir::Shape varying_shape;
  std::vector<std::int64_t> order;
  ir::Shape varying_strides;
  ir::Dim varying_offset;
  ir::Device device;  // torch tensors

  /// Of a fresh one: whether it lies row by row, for all sizes. What the captured call shows of a dimension of size 1 says nothing of others.
  bool lies_in_rows() const { return varying_shape.empty() ? is_row_major(shape, strides) : std::ranges::is_sorted(order); }
};

/// An input that the program wrote.
struct TensorUpdate {
  std::uint32_t input = 0;
  std::optional<std::uint32_t> output;  // the graph output that it takes; none when it ends as it began
  std::uint32_t writes = 0;             // how far `_version` goes up
};

struct BranchTrace;

/// One call of a torch or NumPy callable as the program made it. Stand-ins among the arguments and results are keys of values.
struct TracedCall {
  Ref callable, args, kwargs, result;  // kwargs may be empty
  ir::SharedLocation location;
  std::string variable;  // of the program, which takes the result; empty where none does
  std::vector<std::shared_ptr<BranchTrace>> branches;  // of tenon.cond: (condition, branches, operands of both)
  bool gives_number = false;  // Python's arithmetic of numbers that the graph computes
};

/// The calls of a capture, to run them again without any backend, or to give them to torch.fx.
struct Trace {
  std::vector<Ref> inputs;   // stand-ins, by graph input
  std::vector<TracedCall> calls;
  std::vector<Ref> outputs;  // stand-ins, by graph output that is a result
  /// Inputs that the calls write: the calls use a copy instead, whose end value is that of the update, if there is one.
  struct Copy {
    std::uint32_t input = 0;
    bool updates = false;
    Ref function, copy;
  };
  std::vector<Copy> copies;
  std::unordered_map<PyObject*, std::string> types;  // of each stand-in, as text: "f32[3, 3]"
};

/// A branch of a control op: a trace of its own, over stand-ins of the whole capture.
struct BranchTrace {
  Trace trace;
  std::vector<std::uint32_t> inputs;  // the stand-ins that it reads from outside, by number
  std::vector<std::string> op_names;
};

/// What was recorded, as it is compiled and shown.
struct Recording {
  ir::Graph graph;
  Trace trace;
  std::vector<std::string> op_names;  // of the recorded calls, in order: "torch.sin"
  bool is_backward = false;           // nobody recorded it: it computes the gradients of one that was
};

/// The result of a capture, without its guards.
struct CapturedGraph {
  std::unique_ptr<Recording> recording;  // null where nobody needs it any more
  std::vector<TensorSpec> inputs;       // by graph input
  std::vector<std::optional<FloatTape::Position>> input_steps;  // by graph input: of floats, the steps of the tape that give them; none for objects
  std::vector<std::shared_ptr<FrozenTensor>> frozen;  // by graph input; null for those whose elements may differ from call to call
  std::vector<TensorOutput> tensors;    // in the order in which they are made
  std::vector<std::uint32_t> outputs;   // by `Recorder::output` number: index into `tensors`
  std::vector<TensorUpdate> updates;    // those with a graph output in its order
  std::vector<std::shared_ptr<OpaqueCall>> opaque_calls;  // that nodes of the graph refer to
  ErrorHandlings error_handlings;       // of the nodes
  std::vector<ir::ValueId> assumptions; // bools that must be true for the capture to hold
  bool late_sizes = false;              // there are sizes that depend on data
  bool takes_random_numbers = false;    // from torch's generator
  bool draws_by_kernels = false;        // of ours, some of them
  bool draws_by_calls = false;          // of the library's functions, some of them
  std::vector<std::int64_t> turns;      // by graph input: torch's engine comes to leaves with higher ones first; negative where no call reads it
  bool walks = false;                   // it computes gradients, as torch's autograd engine would
  /// Whether a tensor of it is in another device's memory than the host's.
  bool is_on_device() const {
    const auto elsewhere = [](const auto& tensor) { return !tensor.device.is_host(); };
    return std::ranges::any_of(inputs, elsewhere) || std::ranges::any_of(tensors, elsewhere);
  }
  /// Outputs of the graph that the caller gets as numbers.
  std::vector<std::uint32_t> outputs_as_numbers() const {
    std::vector<std::uint32_t> outputs;
    for (const TensorOutput& t : tensors)
      if (t.kind == TensorOutput::Kind::fresh && t.tensor == TensorKind::scalar) outputs.push_back(t.index);
    return outputs;
  }
  /// Whether NumPy's rules on floating-point errors concern it.
  bool uses_numpy() const {
    for (const std::string& op : recording->op_names)
      if (op.starts_with("numpy.")) return true;
    return false;
  }
  std::shared_ptr<const SegmentGradients> gradients;  // null where no result requires grad
  /// What is run: the recorded graph, or that with what its gradients need.
  const ir::Graph& graph() const { return !gradients ? recording->graph : gradients->run ? *gradients->run : gradients->forward; }
  std::shared_ptr<NumberCheck> numbers;  // gives the values of the graph's symbols at each call; null without symbols
};

}  // namespace tenon::python
