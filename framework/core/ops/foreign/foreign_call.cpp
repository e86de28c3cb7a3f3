#include "core/ops/foreign/foreign_call.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <stdexcept>
#include <unordered_map>

#include "core/ops/catalog.h"
#include "core/ops/foreign/foreign_signature.h"
#include "core/ops/foreign/promotion.h"
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

/// torch takes NumPy's spellings of some keywords, and names what may be cut points or a number by what is given.
std::string_view torch_spelling(std::string_view keyword) {
  if (keyword == "input") return "self";
  if (keyword == "axis") return "dim";
  if (keyword == "keepdims") return "keepdim";
  if (keyword == "x") return "self";
  if (keyword == "indices") return "sections";
  return keyword;
}

/// What the text of an alias and of its op says of parameters.
struct Parsed {
  std::vector<ForeignParameter> parameters;
  std::vector<SchemaParameter> schema;
};

/// Parsed at the first call by the alias; lives for ever, as the catalogue does.
const Parsed& parsed(const AliasMatch& match) {
  static auto* const all = [] {
    auto* made = new std::unordered_map<const Alias*, std::atomic<const Parsed*>>;
    for (const Op& op : all_ops())
      for (const Alias& alias : op.aliases) made->try_emplace(&alias, nullptr);
    return made;
  }();
  std::atomic<const Parsed*>& kept = all->find(match.alias)->second;
  const Parsed* known = kept.load();
  if (known) return *known;
  std::unique_ptr<const Parsed> fresh(new Parsed{parse_signature(match.alias->signature, match.op->schema), parse_schema(match.op->schema)});
  return kept.compare_exchange_strong(known, fresh.get()) ? *fresh.release() : *known;
}

void collect_tensors(const ForeignArgument& a, std::vector<ir::ValueId>& tensors) {
  if (const auto* value = a.as<ir::ValueId>()) tensors.push_back(*value);
  if (const auto* list = a.as<ForeignList>())
    for (const ForeignArgument& each : *list) collect_tensors(each, tensors);
}

std::vector<ir::ValueId> tensors_of(const ForeignCall& call) {
  std::vector<ir::ValueId> tensors;
  for (const ForeignArgument& a : call.positional) collect_tensors(a, tensors);
  for (const auto& [name, a] : call.keyword) collect_tensors(a, tensors);
  return tensors;
}

class Binding {
 public:
  Binding(const ir::Graph& graph, const ForeignCall& call, const AliasMatch& match) : graph_(graph), call_(call), parameters_(parsed(match).parameters), bound_(parameters_.size()) {
    bind_positional();
    bind_keywords();
  }

  void hand_over(ForeignArguments& arguments, const std::vector<SchemaParameter>& schema) const {
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      const ForeignParameter& p = parameters_[i];
      if (bound_[i] && call_.flavour == Flavour::torch) refuse_what_torch_does_not_take(p, *bound_[i], schema);
      if (bound_[i])
        arguments.bind(p.target, *bound_[i]);
      else if (p.otherwise)
        arguments.bind(p.target, *p.otherwise);
      else if (p.variadic)
        arguments.bind(p.target, {ForeignList{}});
      else
        throw Exception(error(Code::invalid_argument, "{}: missing argument '{}'", call_.name, p.name));
    }
  }

  /// Throws for arguments that nothing here answers to: they are given, differ from their default, and the op has no such parameter.
  void refuse_unmapped(const std::vector<SchemaParameter>& schema) const {
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      if (!bound_[i] || bound_[i]->is_none()) continue;
      const ForeignParameter& p = parameters_[i];
      const bool mapped = std::ranges::any_of(schema, [&](const SchemaParameter& s) { return s.name == p.target; });
      if (!mapped && p.name != "dtype" && !same_as_default(i))
        throw Exception(error(Code::unsupported, "argument '{}' of {}", p.name, call_.name));
    }
  }

  /// Arguments that change what a call means beyond any op: refused everywhere.
  void refuse_foreign_features() const {
    constexpr std::string_view kRefused[] = {"out",  "where",      "casting", "subok",         "requires_grad", "layout",
                                             "like", "pin_memory", "inplace", "memory_format"};
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      if (!bound_[i] || bound_[i]->is_none() || same_as_default(i)) continue;
      const std::string& name = parameters_[i].name;
      if (std::ranges::find(kRefused, name) != std::end(kRefused) && !(name == "where" && is_true(*bound_[i])) &&
          !(name == "requires_grad" && is_false(*bound_[i])))
        throw Exception(error(Code::unsupported, "argument '{}' of {}", name, call_.name));
    }
  }

 private:
  /// torch takes None only where a signature has it, nothing but a bool for a flag, and no finite number beyond the dtype that it is converted to; of operands
  /// a tensor is made, in which such a number is infinite, but not of values to fill with.
  void refuse_what_torch_does_not_take(const ForeignParameter& p, const ForeignArgument& a, const std::vector<SchemaParameter>& schema) const {
    const auto known = std::ranges::find(schema, p.target, &SchemaParameter::name);
    const bool optional = p.otherwise ? p.otherwise->is_none() && !p.may_be_left_out : known == schema.end() || known->optional;
    if (a.is_none() && !optional) throw Exception(error(Code::unsupported, "argument '{}' of {} is None", p.name, call_.name));
    if (p.otherwise && p.otherwise->as<bool>() && !a.as<bool>()) throw Exception(error(Code::unsupported, "argument '{}' of {} is no bool", p.name, call_.name));
    if (p.name == "dim" && a.as<bool>() && std::ranges::find(call_.keyword, p.name, [](const auto& given) { return given.first; }) != call_.keyword.end())
      throw Exception(error(Code::unsupported, "argument '{}' of {} is a bool", p.name, call_.name));
    const bool converted = known == schema.end() || !known->is_operand() || p.name == "value" || p.name == "fill_value";
    if (const double* number = a.as<double>(); number && converted && !all_reach(*number))
      throw Exception(error(Code::unsupported, "argument '{}' of {} is {}, which is beyond the dtype of a tensor", p.name, call_.name, *number));
  }

  bool all_reach(double number) const {
    return std::ranges::all_of(tensors_of(call_), [&](ir::ValueId v) { return !is_float(graph_.type(v).dtype) || reaches(graph_.type(v).dtype, number); });
  }

  static bool is_true(const ForeignArgument& a) { return a.as<bool>() && *a.as<bool>(); }
  static bool is_false(const ForeignArgument& a) { return a.as<bool>() && !*a.as<bool>(); }

  bool same_as_default(std::size_t i) const {
    const auto& d = parameters_[i].otherwise;
    if (!d || d->value.index() != bound_[i]->value.index()) return false;
    if (const auto* b = d->as<bool>()) return *b == *bound_[i]->as<bool>();
    if (const auto* n = d->as<ir::Dim>()) return *n == *bound_[i]->as<ir::Dim>();
    if (const auto* n = d->as<double>()) return *n == *bound_[i]->as<double>();
    if (const auto* s = d->as<std::string>()) return *s == *bound_[i]->as<std::string>();
    return false;
  }

  void bind_positional() {
    std::size_t p = 0;
    const auto& given = call_.positional;
    for (std::size_t i = 0; i < given.size(); ++i, ++p) {
      if (p < parameters_.size() && parameters_[p].variadic) {
        if (i + 1 == given.size() && given[i].as<ForeignList>())
          bound_[p] = given[i];
        else
          bound_[p].emplace().value = ForeignList(given.begin() + static_cast<std::ptrdiff_t>(i), given.end());
        return;
      }
      if (p >= parameters_.size() || parameters_[p].keyword_only)
        throw Exception(error(Code::unsupported, "{} with {} positional arguments", call_.name, given.size()));
      bound_[p] = given[i];
    }
  }

  void bind_keywords() {
    for (const auto& [name, value] : call_.keyword) {
      const std::size_t p = parameter_named(name);
      if (p == parameters_.size()) {
        if (value.is_none()) continue;
        throw Exception(error(Code::unsupported, "{} with the keyword argument '{}'", call_.name, name));
      }
      if (bound_[p]) throw Exception(error(Code::invalid_argument, "{}: argument '{}' is given twice", call_.name, name));
      bound_[p] = value;
    }
  }

  std::size_t parameter_named(std::string_view name) const {
    const auto find = [&](std::string_view wanted, bool targets) {
      const auto it =
          std::ranges::find_if(parameters_, [&](const ForeignParameter& p) { return (targets ? p.target : p.name) == wanted; });
      return static_cast<std::size_t>(it - parameters_.begin());
    };
    std::size_t p = find(name, false);
    if (p == parameters_.size() && call_.flavour == Flavour::torch) p = find(torch_spelling(name), true);
    return p;
  }

  const ir::Graph& graph_;
  const ForeignCall& call_;
  const std::vector<ForeignParameter>& parameters_;
  std::vector<std::optional<ForeignArgument>> bound_;
};

/// Makes the node of a call that is a plain renaming: operands and attributes as the schema lists them.
class PlainCall {
 public:
  PlainCall(ForeignArguments& arguments, const Op& op, const std::vector<SchemaParameter>& schema) : arguments_(arguments), op_(op), schema_(schema) {}

  std::vector<ir::ValueId> run() {
    collect_operands();
    for (const SchemaParameter& p : schema_)
      if (!p.is_operand() && arguments_.given(p.name)) attributes_.push_back({p.name, attribute(p)});
    const bool own_dtype = std::ranges::any_of(schema_, [](const SchemaParameter& p) { return p.name == "dtype"; });
    if (const auto dtype = own_dtype ? std::nullopt : arguments_.dtype("dtype"))
      for (ir::ValueId& v : operands_) v = arguments_.builder().cast(v, *dtype);
    arguments_.round_numbers(op_.name, operands_, op_.promotion);
    if (op_.promotion == Promotion::none && !operands_.empty()) operands_[0] = arguments_.tensor(operands_[0]);
    return arguments_.call(op_.name, std::move(operands_), std::move(attributes_));
  }

 private:
  void collect_operands() {
    bool left_out = false;
    for (const SchemaParameter& p : schema_) {
      if (!p.is_operand()) continue;
      if (p.type == "Tensor[]") {
        for (ir::ValueId v : arguments_.values(p.name)) operands_.push_back(v);
        continue;
      }
      if (!arguments_.given(p.name)) {
        TENON_USER_CHECK(p.optional, "{}: argument '{}' is None", op_.name, p.name);
        left_out = true;
        continue;
      }
      if (left_out) throw Exception(error(Code::unsupported, "{}: '{}' without the operand before it", op_.name, p.name));
      operands_.push_back(arguments_.value(p.name));
    }
  }

  std::size_t rank() { return operands_.empty() ? 0 : arguments_.type(operands_[0]).rank(); }

  ir::Attribute attribute(const SchemaParameter& p) {
    const bool dimension = p.name == "dim" || p.name == "dims" || p.name == "dim0" || p.name == "dim1" || p.name == "dim2";
    if (p.type == "int")
      return dimension ? ir::Attribute(ir::Dim(arguments_.dim(p.name, rank()))) : ir::Attribute(arguments_.integer(p.name));
    if (p.type == "int[]") return dimension ? arguments_.dims(p.name, rank()) : arguments_.integers(p.name);
    if (p.type == "bool") return arguments_.flag(p.name);
    if (p.type == "float") return arguments_.number(p.name, 0);
    if (p.type == "str") return arguments_.text(p.name, {});
    if (p.type == "ScalarType") return *arguments_.dtype(p.name);
    TENON_CHECK(p.type == "Scalar", "the schema of {} has the unknown type {}", op_.name, p.type);
    if (const auto* d = arguments_[p.name].as<ir::Dim>()) return *d;
    if (const auto* b = arguments_[p.name].as<bool>()) return ir::Dim(*b);
    return arguments_.number(p.name, 0);
  }

  ForeignArguments& arguments_;
  const Op& op_;
  const std::vector<SchemaParameter>& schema_;
  std::vector<ir::ValueId> operands_;
  ir::Attributes attributes_;
};

/// What a call makes beside its tensors it makes where they are, unless it names a device.
class BesideTensors {
 public:
  BesideTensors(NodeBuilder& builder, const ForeignCall& call) : builder_(builder), before_(builder.device()) {
    builder.on(infer::device(OpQuery(builder.graph(), tensors_of(call), {})));
  }
  ~BesideTensors() { builder_.on(before_); }
  BesideTensors(const BesideTensors&) = delete;

 private:
  NodeBuilder& builder_;
  const ir::Device before_;
};

ForeignResult call_alias(NodeBuilder& builder, const ForeignCall& call, const AliasMatch& match) {
  const Binding binding(builder.graph(), call, match);
  const std::vector<SchemaParameter>& schema = parsed(match).schema;
  binding.refuse_foreign_features();
  const BesideTensors beside(builder, call);
  ForeignArguments arguments(builder, call, *match.op);
  binding.hand_over(arguments, schema);
  if (match.op->traits.creates)
    if (const auto device = arguments.device()) builder.on(*device);
  ForeignResult result;
  if (match.alias->adapt) {
    result.values = match.alias->adapt(arguments);
  } else {
    binding.refuse_unmapped(schema);
    result.values = PlainCall(arguments, *match.op, schema).run();
  }
  result.container = arguments.container;
  result.of_complex = arguments.of_complex();
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
  TENON_USER_CHECK(got.device == self.device, "the result is on {}, and what it is written to on {}", ir::device_text(got.device), ir::device_text(self.device));
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
