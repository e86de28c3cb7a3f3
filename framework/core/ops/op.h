// An op of the catalogue: everything that is known of it, in one entry.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "core/ir/graph.h"
#include "core/ops/loop_body.h"

namespace tenon::ops {

/// Which strides torch gives the single result of an op that `decompose` defines, on the CPU. Where a rule holds nobody need ask the library.
enum class ResultLayout : std::uint8_t {
  unknown,
  row_major_of_row_major,  // row-major when all operands are
  row_major,               // whatever the operands' strides are
  memory_format,           // channels last where an operand is (torch's suggest_memory_format), else row-major
};

struct Traits {
  bool random = false;     // ordered by a token; never merged, reordered, duplicated, or removed
  bool may_raise = false;  // the values of operands decide whether it fails (an index out of range)
  bool opaque = false;     // runs foreign code; ordered by a token
  bool control = false;    // has regions that the host may run
  bool creates = false;    // takes the device of its result as the attribute `device`: that of its operands, or the host, where it has none
  bool copies = false;     // to the device that its attribute `device` names; the host runs it where that is another device than the operand's
  bool by_lanes = false;   // with `kernel`: takes the lanes along its attribute `dim` one by one, so that parts of the other dimensions may run at once
  bool is_inferred_whole = false;  // what `infer` takes of tensors, the loops or simpler nodes of its meaning take: whoever checks types need not make them
  ResultLayout layout = ResultLayout::unknown;
};

/// How operands of different dtypes become one (torch's categories, or NumPy 2's rules, by the flavour of the call), before the
/// node is made. Nodes themselves have operands of one dtype (literals excepted): casts are explicit.
enum class Promotion : std::uint8_t {
  none,        // operands stay as they are
  common,      // to the common dtype
  common_float,  // to the common dtype; integers and bool to the default float
};

/// What an op is asked about: operand types and values, and attributes. `operand_literal` is null for what is no literal.
class OpQuery {
 public:
  OpQuery(const ir::Graph& graph, std::span<const ir::ValueId> operands, const ir::Attributes& attributes)
      : graph_(graph), operands_(operands), attributes_(attributes) {}

  const ir::Graph& graph() const { return graph_; }
  std::size_t operand_count() const { return operands_.size(); }
  std::span<const ir::ValueId> operands() const { return operands_; }
  const ir::Type& type(std::size_t operand) const { return graph_.type(operands_[operand]); }
  const ir::Literal* literal(std::size_t operand) const;
  const ir::Attributes& attributes() const { return attributes_; }

  /// Attributes by name. Absent and None are the same; each throws (invalid_argument) when the attribute is absent and no default
  /// is given, or of another kind.
  const ir::Attribute* find(std::string_view name) const;
  ir::Dim integer(std::string_view name, std::optional<ir::Dim> otherwise = {}) const;
  std::int64_t constant_integer(std::string_view name, std::optional<std::int64_t> otherwise = {}) const;
  std::vector<ir::Dim> integers(std::string_view name) const;
  bool flag(std::string_view name, bool otherwise = false) const;
  double number(std::string_view name, std::optional<double> otherwise = {}) const;
  DType dtype(std::string_view name, std::optional<DType> otherwise = {}) const;
  std::string text(std::string_view name, std::optional<std::string> otherwise = {}) const;
  /// A device in the one form that the text has: "device9:0".
  std::optional<ir::Device> device(std::string_view name) const;

 private:
  const ir::Graph& graph_;
  std::span<const ir::ValueId> operands_;
  const ir::Attributes& attributes_;
};

enum class Flavour : std::uint8_t { torch, numpy };  // whose function a call is of

class NodeBuilder;       // builds nodes with inferred types: ops/build/node_builder.h
class ForeignArguments;  // the bound arguments of a foreign call: ops/foreign/foreign_call.h
struct Sample;           // one conformance case: ops/reference/sample.h

/// A name in another library, with its own signature where that differs: {"numpy.sum", "(a, axis=None, dtype=None, keepdims=False)"}.
/// A parameter of the signature maps to the parameter of the op's schema with the same name, unless renamed: "(a -> self, axis -> dim)".
///   Signatures are Python's: defaults are literals, `*sizes` collects (or takes one list), `*` starts keyword-only parameters.
/// A parameter that is mapped to nothing is refused unless it has its default. `adapt` makes the nodes itself, from the bound arguments,
/// where the foreign call is no plain renaming.
struct Alias {
  std::string name;
  std::string signature;
  std::function<std::vector<ir::ValueId>(ForeignArguments&)> adapt;
};

/// A view of a tensor in host memory, as the reference kernels see it: strides in elements, `data` at the first element.
struct TensorView {
  void* data = nullptr;
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;
};

/// What a written-out reference kernel gets. `outputs` are allocated by the caller, unless their size depends on data: then
/// `allocate(i, shape)` gives the memory of output i. Of a kernel with several outputs those that nobody reads may be without memory.
struct KernelCall {
  std::span<const TensorView> inputs;
  std::span<TensorView> outputs;
  const OpQuery& query;
  std::span<const std::int64_t> symbols;  // by SymbolId
  std::function<TensorView&(std::size_t, std::vector<std::int64_t>)> allocate;
};

/// What a view shows of one dimension of its tensor: the places `start`, `start + step`, and so on; or, not kept, `start` alone.
struct ShownDim {
  ir::Dim start = ir::Dim(0);
  std::int64_t step = 1;
  bool kept = true;
};

struct Op {
  std::string name;
  /// Parameters as in ATen's schema language: tensors are operands; what follows `*` or is no Tensor is an attribute.
  std::string schema;
  std::vector<Alias> aliases;
  Traits traits;
  Promotion promotion = Promotion::none;

  /// Gives the result types, or says what is wrong with the operands. One function: it also validates.
  std::function<Result<std::vector<ir::Type>>(const OpQuery&)> infer;

  // The meaning: exactly one of the next five.
  /// Pointwise: operands are broadcast to the result's shape. Takes the operands as scalars of their compute type.
  std::function<Scalar(Scalars&, std::span<const Scalar>, const OpQuery&)> body;
  /// Beside `body`, where torch's derivative is not that of the formula (at kinks, ties, and ends of ranges), or where the formula's loses
  /// digits: what each operand is handed, from the operands, the result, and the gradient of the result.
  std::function<std::vector<Scalar>(Scalars&, std::span<const Scalar> operands, Scalar result, Scalar gradient, const OpQuery&)> slope;
  /// A loop nest with computed loads and an optional reduction.
  std::function<LoopBody(const OpQuery&)> loop;
  /// Beside `loop`, of an op that gives its first operand with the second one written to a view of it: that view, by dimension.
  std::function<std::vector<ShownDim>(const OpQuery&)> written_part;
  std::function<ScatterBody(const OpQuery&)> scatter;
  /// Nodes of simpler ops that give the same results.
  std::function<std::vector<ir::ValueId>(NodeBuilder&, const OpQuery&)> decompose;
  /// A kernel written out, for what no loop nest says (sizes that depend on data, sorting).
  std::function<void(KernelCall&)> kernel;
  /// Beside `kernel`: nodes that give the same up to rounding, for a target whose threads run loop nests alone. Throws (unsupported) where there
  /// are none.
  std::function<std::vector<ir::ValueId>(NodeBuilder&, const OpQuery&)> in_loops;

  /// Beside any of these: nodes that give the same of complex operands as the library of that flavour, by real and imaginary parts. Operands are promoted; a number is
  /// a literal. Absent where the library has nothing for complex numbers, or only its own kernels. Throws (unsupported) where some have none.
  std::function<std::vector<ir::ValueId>(NodeBuilder&, const OpQuery&, Flavour)> of_complex;

  /// Gradients of the operands as nodes, from nodes; absent where derived from `body`, or where `no_grad_reason` says why not.
  std::function<std::vector<ir::ValueId>(NodeBuilder&, const OpQuery&, std::span<const ir::ValueId> results,
                                         std::span<const ir::ValueId> result_grads)>
      grad;
  /// Beside `grad` and `decompose`: the nodes that it is for, where others are differentiated as what they are made of.
  std::function<bool(const OpQuery&)> grad_holds;
  std::string no_grad_reason;

  /// The conformance cases.
  std::function<std::vector<Sample>()> samples;
};

}  // namespace tenon::ops
