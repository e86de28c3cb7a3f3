// Calls in the words of another library (torch, NumPy), bound to ops of the catalogue.
#pragma once

#include <complex>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/ops/build/node_builder.h"

namespace tenon::ops {

struct ForeignArgument;
using ForeignList = std::vector<ForeignArgument>;

/// A slice as it stands in a subscript; what was None is absent.
struct ForeignSlice {
  std::optional<ir::Dim> start, stop, step;
};

/// `...` in a subscript.
struct ForeignEllipsis {};

/// An argument as the importer found it: None, a tensor value, a Python number (weak; a complex one stands last), a string, a dtype, a slice, `...`, a list or tuple.
struct ForeignArgument {
  std::variant<std::monostate, ir::ValueId, bool, ir::Dim, double, std::string, DType, ForeignList, ForeignSlice, ForeignEllipsis, std::complex<double>> value;

  bool is_none() const { return value.index() == 0; }
  template <class T>
  const T* as() const { return std::get_if<T>(&value); }
};

struct ForeignCall {
  /// An alias ("torch.nn.functional.gelu", "torch.Tensor.__radd__", "numpy.ndarray.mean"). `torch.Tensor.NAME_` is the in-place
  /// variant of `torch.Tensor.NAME`: the result has the dtype and shape of self, and writing it back is the importer's part;
  /// so with `__iadd__` and the like, and `__setitem__` (arguments: self, index, value), which gives the new value of self.
  std::string_view name;
  std::vector<ForeignArgument> positional;
  std::vector<std::pair<std::string, ForeignArgument>> keyword;
  Flavour flavour = Flavour::torch;
  DType default_float = DType::f32;  // torch.get_default_dtype()
  bool any_device = false;  // whether the importer can give results that are not in the host's memory
  /// NumPy: operands that are NumPy scalars or 0-d arrays are strong; Python numbers are weak in both flavours.
};

/// Binds the arguments to the op's schema, promotes operands (with explicit casts), and makes the nodes. Returns the results: one
/// for most; where the library gives a tuple or list (split, unbind, var_mean, max with dim), all of them in order.
/// Not an error of the user: an alias that is unknown, or arguments that the mapping does not cover, give `unsupported`, so that the
/// importer can make an opaque call or break the graph. What the library itself would refuse gives `invalid_argument`.
/// On an error nodes may have been added that nothing reads.
Result<std::vector<ir::ValueId>> call_foreign(NodeBuilder& builder, const ForeignCall& call);

/// The results as the library's own container: a single value, a tuple, or a list.
enum class Container : std::uint8_t { single, tuple, list };

/// What `call_foreign` gives for this call, as the library's caller sees it. A named tuple (torch.max with dim) counts as a tuple.
struct ForeignResult {
  std::vector<ir::ValueId> values;
  Container container = Container::single;
  bool of_complex = false;  // the op's own meaning for complex operands has given it
};
Result<ForeignResult> call_foreign_shaped(NodeBuilder& builder, const ForeignCall& call);

/// The dtype in which two tensors meet: torch's or NumPy's table. Nothing where NumPy has only a type that Tenon lacks.
std::optional<DType> common_dtype(Flavour flavour, DType a, DType b);

/// The arguments of one foreign call, bound to the parameters of the alias's signature: what an `adapt` function works on.
class ForeignArguments {
 public:
  ForeignArguments(NodeBuilder& builder, const ForeignCall& call, const Op& op) : builder_(builder), call_(call), op_(op) {}

  NodeBuilder& builder() { return builder_; }
  ir::Graph& graph() { return builder_.graph(); }
  Flavour flavour() const { return call_.flavour; }
  bool numpy() const { return call_.flavour == Flavour::numpy; }
  DType default_float() const { return numpy() ? DType::f64 : call_.default_float; }
  const Op& op() const { return op_; }

  void bind(std::string parameter, ForeignArgument argument);
  /// The argument of a parameter; None where it was left out and has no default.
  const ForeignArgument& operator[](std::string_view parameter) const;
  bool given(std::string_view parameter) const { return !(*this)[parameter].is_none(); }
  /// Throws (unsupported) when one of the parameters is neither None nor its default.
  void refuse(std::initializer_list<std::string_view> parameters) const;

  /// The argument as a value: a tensor, or a literal for a number. NumPy takes lists for arrays.
  ir::ValueId value(std::string_view parameter);
  ir::ValueId to_value(const ForeignArgument& argument);
  /// The tensor that torch.tensor or numpy.array makes of a number, a tensor, or nested lists of them.
  ir::ValueId tensor_of(const ForeignArgument& argument);
  bool is_tensor(std::string_view parameter) const { return (*this)[parameter].as<ir::ValueId>() != nullptr; }
  std::vector<ir::ValueId> values(std::string_view parameter);
  ir::Dim integer(std::string_view parameter) const;
  ir::Dim integer(std::string_view parameter, ir::Dim otherwise) const;
  std::int64_t constant(std::string_view parameter) const;
  /// A list of integers; a single integer counts as a list of one.
  std::vector<ir::Dim> integers(std::string_view parameter) const;
  bool flag(std::string_view parameter, bool otherwise = false) const;
  double number(std::string_view parameter, double otherwise) const;
  std::string text(std::string_view parameter, std::string otherwise) const;
  std::optional<DType> dtype(std::string_view parameter) const;
  /// The device that the call asks for by `device`; nothing where it names none. Throws (unsupported) for a word that names none, and for
  /// one that the importer has no use for.
  std::optional<ir::Device> device() const;
  ir::Device device_named(const std::string& word) const;
  /// The dimensions of an `axis` or `dim` argument, made non-negative; None (and torch's empty list) gives all.
  std::vector<ir::Dim> dims(std::string_view parameter, std::size_t rank) const;
  std::int64_t dim(std::string_view parameter, std::size_t rank) const;

  const ir::Type& type(ir::ValueId value) { return graph().type(value); }
  /// The dtype that the values would be promoted to by the call's flavour; literals are weak.
  DType promoted(std::span<const ir::ValueId> values, Promotion promotion);
  /// Makes numbers beside floats of 16 bits floats of that size, where the library does so before it computes the op.
  void round_numbers(std::string_view op, std::span<ir::ValueId> values, Promotion promotion);
  /// Casts tensors to what `promoted` says.
  void promote(std::span<ir::ValueId> values, Promotion promotion);
  /// Casts tensors to the dtype, and makes complex numbers tensors of it.
  void convert(std::span<ir::ValueId> values, DType dtype);
  /// Makes a node after promoting the operands as the catalogue says for that op.
  std::vector<ir::ValueId> call(std::string_view op, std::vector<ir::ValueId> operands, ir::Attributes attributes = {});
  ir::ValueId one(std::string_view op, std::vector<ir::ValueId> operands, ir::Attributes attributes = {});
  /// A tensor for a value: a literal becomes a 0-d tensor of the dtype that the library gives it.
  ir::ValueId tensor(ir::ValueId value);
  /// A tensor of the dtype for a value, without dimensions for a literal.
  ir::ValueId tensor(ir::ValueId value, DType dtype);

  /// Throws (unsupported) where a number, or one in a list for a dtype of integers, is an integer that the dtype does not hold. Of a number that varies: in the call for which the graph
  /// is built, and those like it.
  void require_represented(ir::ValueId number, DType dtype);
  void require_represented(const ForeignArgument& numbers, DType dtype);

  bool of_complex() const { return of_complex_; }

  Container container = Container::single;  // set by adapt functions whose result is no single value

 private:
  void refuse_axis_of_number(std::size_t rank) const;
  bool is_number(ir::ValueId value) { return graph().value(value).kind == ir::ValueKind::literal || complex_number(value); }
  const std::complex<double>* complex_number(ir::ValueId value) const;
  ir::ValueId complex_tensor(std::complex<double> number, DType dtype);

  NodeBuilder& builder_;
  const ForeignCall& call_;
  const Op& op_;
  std::vector<std::pair<std::string, ForeignArgument>> arguments_;
  std::vector<std::pair<ir::ValueId, std::complex<double>>> complex_numbers_;  // tensors that stand for numbers, which are weak
  bool of_complex_ = false;
};

}  // namespace tenon::ops
