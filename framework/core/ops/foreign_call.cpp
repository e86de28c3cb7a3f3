#include "core/ops/foreign_call.h"

#include <algorithm>
#include <stdexcept>

#include "core/ops/catalog.h"
#include "core/ops/foreign_signature.h"
#include "core/ops/infer.h"

namespace tenon::ops {
namespace {

/// torch's own modules under their public names: {private prefix, public prefix}.
constexpr std::pair<std::string_view, std::string_view> kPrefixes[] = {{"torch._C._nn.", "torch.nn.functional."},
                                                                       {"torch._C._special.special_", "torch.special."},
                                                                       {"torch._C._linalg.linalg_", "torch.linalg."},
                                                                       {"torch._C._VariableFunctions.", "torch."},
                                                                       {"torch._VF.", "torch."},
                                                                       {"torch._C.TensorBase.", "torch.Tensor."},
                                                                       {"torch._C._TensorBase.", "torch.Tensor."},
                                                                       {"torch.special.", "torch."},
                                                                       {"torch.nn.functional.", "torch."},
                                                                       {"torch.Tensor.", "torch."},
                                                                       {"numpy.ma.", ""}};

AliasMatch resolve(std::string_view name) {
  if (const AliasMatch match = find_alias(name); match.op) return match;
  for (const auto& [inner, outer] : kPrefixes) {
    if (outer.empty() || !name.starts_with(inner)) continue;
    const std::string other = std::string(outer) + std::string(name.substr(inner.size()));
    if (const AliasMatch match = find_alias(other); match.op) return match;
    if (inner.starts_with("torch._")) return resolve(other);
  }
  return {};
}

/// `torch.Tensor.add_` → `torch.Tensor.add`, `__iadd__` → `__add__`; empty for what is no in-place variant.
std::string out_of_place(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return {};
  const std::string_view method = name.substr(dot + 1);
  if (method.starts_with("__i") && method.ends_with("__") && method.size() > 5 && method != "__invert__" && method != "__iter__" &&
      method != "__index__" && method != "__int__")
    return std::string(name.substr(0, dot)) + ".__" + std::string(method.substr(3));
  if (method.ends_with("_") && !method.ends_with("__") && method.size() > 1) return std::string(name.substr(0, name.size() - 1));
  return {};
}

/// torch takes NumPy's spellings of some keywords.
std::string_view torch_spelling(std::string_view keyword) {
  if (keyword == "input") return "self";
  if (keyword == "axis") return "dim";
  if (keyword == "keepdims") return "keepdim";
  if (keyword == "x") return "self";
  return keyword;
}

class Binding {
 public:
  Binding(const ForeignCall& call, const AliasMatch& match)
      : x_call(call), x_parameters(parse_signature(match.alias->signature, match.op->schema)), x_bound(x_parameters.size()) {
    bind_positional();
    bind_keywords();
  }

  void hand_over(ForeignArguments& arguments) const {
    for (std::size_t i = 0; i < x_parameters.size(); ++i) {
      const ForeignParameter& p = x_parameters[i];
      if (x_bound[i])
        arguments.bind(p.target, *x_bound[i]);
      else if (p.otherwise)
        arguments.bind(p.target, *p.otherwise);
      else if (p.variadic)
        arguments.bind(p.target, {ForeignList{}});
      else
        throw Exception(error(Code::invalid_argument, "{}: missing argument '{}'", x_call.name, p.name));
    }
  }

  /// Throws for arguments that nothing here answers to: they are given, differ from their default, and the op has no such parameter.
  void refuse_unmapped(const std::vector<SchemaParameter>& schema) const {
    for (std::size_t i = 0; i < x_parameters.size(); ++i) {
      if (!x_bound[i] || x_bound[i]->is_none()) continue;
      const ForeignParameter& p = x_parameters[i];
      const bool mapped = std::ranges::any_of(schema, [&](const SchemaParameter& s) { return s.name == p.target; });
      if (!mapped && p.name != "dtype" && !same_as_default(i))
        throw Exception(error(Code::unsupported, "argument '{}' of {}", p.name, x_call.name));
    }
  }

  /// Arguments that change what a call means beyond any op: refused everywhere.
  void refuse_foreign_features() const {
    constexpr std::string_view kRefused[] = {"out",  "where",      "casting", "subok",         "requires_grad", "layout",
                                             "like", "pin_memory", "inplace", "memory_format", "device",        "ndmin"};
    for (std::size_t i = 0; i < x_parameters.size(); ++i) {
      if (!x_bound[i] || x_bound[i]->is_none() || same_as_default(i)) continue;
      const std::string& name = x_parameters[i].name;
      const std::string* word = x_bound[i]->as<std::string>();
      if (name == "device" && word && *word == "cpu") continue;
      if (std::ranges::find(kRefused, name) != std::end(kRefused) && !(name == "where" && is_true(*x_bound[i])) &&
          !(name == "requires_grad" && is_false(*x_bound[i])))
        throw Exception(error(Code::unsupported, "argument '{}' of {}", name, x_call.name));
    }
  }

 private:
  static bool is_true(const ForeignArgument& a) { return a.as<bool>() && *a.as<bool>(); }
  static bool is_false(const ForeignArgument& a) { return a.as<bool>() && !*a.as<bool>(); }

  bool same_as_default(std::size_t i) const {
    const auto& d = x_parameters[i].otherwise;
    if (!d || d->value.index() != x_bound[i]->value.index()) return false;
    if (const auto* b = d->as<bool>()) return *b == *x_bound[i]->as<bool>();
    if (const auto* n = d->as<ir::Dim>()) return *n == *x_bound[i]->as<ir::Dim>();
    if (const auto* n = d->as<double>()) return *n == *x_bound[i]->as<double>();
    if (const auto* s = d->as<std::string>()) return *s == *x_bound[i]->as<std::string>();
    return false;
  }

  void bind_positional() {
    std::size_t p = 0;
    const auto& given = x_call.positional;
    for (std::size_t i = 0; i < given.size(); ++i, ++p) {
      if (p < x_parameters.size() && x_parameters[p].variadic) {
        if (i + 1 == given.size() && given[i].as<ForeignList>())
          x_bound[p] = given[i];
        else
          x_bound[p].emplace().value = ForeignList(given.begin() + static_cast<std::ptrdiff_t>(i), given.end());
        return;
      }
      if (p >= x_parameters.size() || x_parameters[p].keyword_only)
        throw Exception(error(Code::unsupported, "{} with {} positional arguments", x_call.name, given.size()));
      x_bound[p] = given[i];
    }
  }

  void bind_keywords() {
    for (const auto& [name, value] : x_call.keyword) {
      const std::size_t p = parameter_named(name);
      if (p == x_parameters.size()) {
        if (value.is_none()) continue;
        throw Exception(error(Code::unsupported, "{} with the keyword argument '{}'", x_call.name, name));
      }
      if (x_bound[p]) throw Exception(error(Code::invalid_argument, "{}: argument '{}' is given twice", x_call.name, name));
      x_bound[p] = value;
    }
  }

  std::size_t parameter_named(std::string_view name) const {
    const auto find = [&](std::string_view wanted, bool targets) {
      const auto it =
          std::ranges::find_if(x_parameters, [&](const ForeignParameter& p) { return (targets ? p.target : p.name) == wanted; });
      return static_cast<std::size_t>(it - x_parameters.begin());
    };
    std::size_t p = find(name, false);
    if (p == x_parameters.size() && x_call.flavour == Flavour::torch) p = find(torch_spelling(name), true);
    return p;
  }

  const ForeignCall& x_call;
  std::vector<ForeignParameter> x_parameters;
  std::vector<std::optional<ForeignArgument>> x_bound;
};

/// Makes the node of a call that is a plain renaming: operands and attributes as the schema lists them.
class PlainCall {
 public:
  PlainCall(ForeignArguments& arguments, const Op& op, std::vector<SchemaParameter> schema)
      : x_arguments(arguments), x_op(op), x_schema(std::move(schema)) {}

  std::vector<ir::ValueId> run() {
    collect_operands();
    for (const SchemaParameter& p : x_schema)
      if (!p.is_operand() && x_arguments.given(p.name)) x_attributes.push_back({p.name, attribute(p)});
    const bool own_dtype = std::ranges::any_of(x_schema, [](const SchemaParameter& p) { return p.name == "dtype"; });
    if (const auto dtype = own_dtype ? std::nullopt : x_arguments.dtype("dtype"))
      for (ir::ValueId& v : x_operands) v = x_arguments.builder().cast(v, *dtype);
    if (x_op.promotion == Promotion::none && !x_operands.empty()) x_operands[0] = x_arguments.tensor(x_operands[0]);
    return x_arguments.call(x_op.name, std::move(x_operands), std::move(x_attributes));
  }

 private:
  void collect_operands() {
    bool left_out = false;
    for (const SchemaParameter& p : x_schema) {
      if (!p.is_operand()) continue;
      if (p.type == "Tensor[]") {
        for (ir::ValueId v : x_arguments.values(p.name)) x_operands.push_back(v);
        continue;
      }
      if (!x_arguments.given(p.name)) {
        TENON_USER_CHECK(p.optional, "{}: argument '{}' is None", x_op.name, p.name);
        left_out = true;
        continue;
      }
      if (left_out) throw Exception(error(Code::unsupported, "{}: '{}' without the operand before it", x_op.name, p.name));
      x_operands.push_back(x_arguments.value(p.name));
    }
  }

  std::size_t rank() { return x_operands.empty() ? 0 : x_arguments.type(x_operands[0]).rank(); }

  ir::Attribute attribute(const SchemaParameter& p) {
    const bool dimension = p.name == "dim" || p.name == "dims" || p.name == "dim0" || p.name == "dim1" || p.name == "dim2";
    if (p.type == "int")
      return dimension ? ir::Attribute(ir::Dim(x_arguments.dim(p.name, rank()))) : ir::Attribute(x_arguments.integer(p.name));
    if (p.type == "int[]") return dimension ? x_arguments.dims(p.name, rank()) : x_arguments.integers(p.name);
    if (p.type == "bool") return x_arguments.flag(p.name);
    if (p.type == "float") return x_arguments.number(p.name, 0);
    if (p.type == "str") return x_arguments.text(p.name, {});
    if (p.type == "ScalarType") return *x_arguments.dtype(p.name);
    TENON_CHECK(p.type == "Scalar", "the schema of {} has the unknown type {}", x_op.name, p.type);
    if (const auto* d = x_arguments[p.name].as<ir::Dim>()) return *d;
    if (const auto* b = x_arguments[p.name].as<bool>()) return ir::Dim(*b);
    return x_arguments.number(p.name, 0);
  }

  ForeignArguments& x_arguments;
  const Op& x_op;
  std::vector<SchemaParameter> x_schema;
  std::vector<ir::ValueId> x_operands;
  ir::Attributes x_attributes;
};

ForeignResult call_alias(NodeBuilder& builder, const ForeignCall& call, const AliasMatch& match) {
  const Binding binding(call, match);
  binding.refuse_foreign_features();
  ForeignArguments arguments(builder, call, *match.op);
  binding.hand_over(arguments);
  ForeignResult result;
  if (match.alias->adapt) {
    result.values = match.alias->adapt(arguments);
  } else {
    auto schema = parse_schema(match.op->schema);
    binding.refuse_unmapped(schema);
    result.values = PlainCall(arguments, *match.op, std::move(schema)).run();
  }
  result.container = arguments.container;
  return result;
}

int kind_of(DType t) { return is_bool(t) ? 0 : is_int(t) ? 1 : 2; }

/// An in-place variant: the result must fit self, and takes its dtype.
ForeignResult call_in_place(NodeBuilder& builder, const ForeignCall& call, const AliasMatch& match) {
  TENON_USER_CHECK(!call.positional.empty() && call.positional[0].as<ir::ValueId>(), "{}: self must be a tensor", call.name);
  const ir::Type self = builder.graph().type(*call.positional[0].as<ir::ValueId>());
  ForeignResult result = call_alias(builder, call, match);
  if (result.values.size() != 1) throw Exception(error(Code::unsupported, "{} has several results", call.name));
  const ir::Type got = builder.graph().type(result.values[0]);
  TENON_USER_CHECK(got.shape == self.shape, "output with shape {} doesn't match the broadcast shape {}",
                   infer::text(builder.graph(), self.shape), infer::text(builder.graph(), got.shape));
  TENON_USER_CHECK(kind_of(got.dtype) <= kind_of(self.dtype), "result type {} can't be cast to the desired output type {}",
                   name_of(got.dtype), name_of(self.dtype));
  result.values[0] = builder.cast(result.values[0], self.dtype);
  return result;
}

Result<ForeignResult> call_named(NodeBuilder& builder, const ForeignCall& call) {
  if (const AliasMatch match = resolve(call.name); match.op) return call_alias(builder, call, match);
  if (const std::string base = out_of_place(call.name); !base.empty())
    if (const AliasMatch match = resolve(base); match.op) return call_in_place(builder, call, match);
  return error(Code::unsupported, "no op answers to '{}'", call.name);
}

}  // namespace

Result<ForeignResult> call_foreign_shaped(NodeBuilder& builder, const ForeignCall& call) {
  try {
    return call_named(builder, call);
  } catch (const Exception& e) {
    return e.code() == Code::not_found ? Error{Code::unsupported, e.what()} : e.error();
  } catch (const std::out_of_range&) {
    return error(Code::unsupported, "{} of operands with fewer dimensions than it takes", call.name);
  }
}

Result<std::vector<ir::ValueId>> call_foreign(NodeBuilder& builder, const ForeignCall& call) {
  auto result = call_foreign_shaped(builder, call);
  if (!result) return result.error();
  return std::move(result->values);
}

}  // namespace tenon::ops
