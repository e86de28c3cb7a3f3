#include "core/ops/catalog.h"
#include "core/ops/foreign/foreign_call.h"
#include "core/ops/foreign/promotion.h"
#include "core/ops/infer.h"
#include "core/ops/size_questions.h"

#include <algorithm>
#include <cmath>

namespace tenon::ops {
namespace {

bool is_literal(const ir::Graph& graph, ir::ValueId v) { return graph.value(v).kind == ir::ValueKind::literal; }

/// A 0-d integer tensor is no number: its value is not known here.
[[noreturn]] void refuse_kind(std::string_view parameter, const char* wanted) {
  throw Exception(error(Code::unsupported, "argument '{}' is no {}", parameter, wanted));
}

/// The dtype that NumPy knows by that name; nothing where it is no name of one that graphs carry.
std::optional<DType> numpy_dtype(std::string_view name) {
  static constexpr std::pair<std::string_view, DType> kNames[] = {
      {"float64", DType::f64}, {"float32", DType::f32}, {"float16", DType::f16}, {"int64", DType::i64}, {"int32", DType::i32},
      {"int16", DType::i16},   {"int8", DType::i8},     {"uint8", DType::u8},    {"bool", DType::b8},   {"float", DType::f64},
      {"int", DType::i64}};
  const auto found = std::ranges::find(kNames, name, [](const auto& known) { return known.first; });
  return found == std::end(kNames) ? std::nullopt : std::optional(found->second);
}

/// Whether torch computes the op beside tensors of half precision with a number as it is: what it multiplies with, and divides by.
bool keeps_numbers(std::string_view op) {
  constexpr std::string_view kKeep[] = {"mul", "div", "floor_divide", "trunc_divide", "lerp"};
  return std::ranges::find(kKeep, op) != std::end(kKeep);
}

/// Whether a value is a number in the host's memory that a tensor holds which is not of half precision.
bool is_wider_number(const ir::Graph& graph, ir::ValueId value) {
  const ir::Type& type = graph.type(value);
  return !is_literal(graph, value) && type.rank() == 0 && type.device.is_host() && !is_reduced_float(type.dtype) && !is_complex(type.dtype);
}

}  // namespace

void ForeignArguments::bind(std::string parameter, ForeignArgument argument) {
  for (auto& [name, value] : arguments_)
    if (name == parameter) {
      value = std::move(argument);
      return;
    }
  arguments_.emplace_back(std::move(parameter), std::move(argument));
}

const ForeignArgument& ForeignArguments::operator[](std::string_view parameter) const {
  static const ForeignArgument none;
  for (const auto& [name, value] : arguments_)
    if (name == parameter) return value;
  return none;
}

void ForeignArguments::refuse(std::initializer_list<std::string_view> parameters) const {
  for (std::string_view p : parameters) {
    const ForeignArgument& a = (*this)[p];
    const bool* flag = a.as<bool>();
    const std::string* word = a.as<std::string>();
    const bool harmless = a.is_none() || (flag && *flag == (p == "where")) ||
                          (word && (*word == "cpu" || *word == "same_kind" || *word == "unsafe" || *word == "even"));
    if (!harmless) throw Exception(error(Code::unsupported, "argument '{}' of {}", p, call_.name));
  }
}

ir::ValueId ForeignArguments::to_value(const ForeignArgument& a) {
  if (const auto* v = a.as<ir::ValueId>()) return *v;
  if (const auto* b = a.as<bool>()) return builder_.literal(*b);
  if (const auto* d = a.as<ir::Dim>()) return builder_.literal(*d);
  if (const auto* d = a.as<double>()) return builder_.literal(*d);
  if (const auto* z = a.as<std::complex<double>>()) {
    const ir::ValueId tensor = complex_tensor(*z, complex_type(default_float()));
    complex_numbers_.emplace_back(tensor, *z);
    return tensor;
  }
  constexpr std::size_t kMostItems = 64;  // each is a node
  if (const auto* list = a.as<ForeignList>(); list && numpy() && list->size() <= kMostItems) return tensor_of(a);
  throw Exception(error(Code::unsupported, "{} with an argument that is neither a tensor nor a number", call_.name));
}

ir::ValueId ForeignArguments::tensor_of(const ForeignArgument& a) {
  const auto* list = a.as<ForeignList>();
  if (!list) return tensor(to_value(a));
  if (list->empty()) return builder_.full(ir::Dim(0), default_float(), {ir::Dim(0)});
  std::vector<ir::ValueId> parts;
  for (const ForeignArgument& part : *list) parts.push_back(tensor_of(part));
  promote(parts, Promotion::common);
  return one("stack", std::move(parts), {{"dim", ir::Dim(0)}});
}

ir::ValueId ForeignArguments::value(std::string_view parameter) { return to_value((*this)[parameter]); }

std::vector<ir::ValueId> ForeignArguments::values(std::string_view parameter) {
  const auto* list = (*this)[parameter].as<ForeignList>();
  if (!list) refuse_kind(parameter, "list of tensors");
  std::vector<ir::ValueId> all;
  for (const ForeignArgument& a : *list) all.push_back(to_value(a));
  return all;
}

/// torch takes no bool for an integer, and nothing but a bool for a flag; NumPy does.
ir::Dim ForeignArguments::integer(std::string_view parameter) const {
  const ForeignArgument& a = (*this)[parameter];
  if (const auto* d = a.as<ir::Dim>()) return *d;
  if (const auto* b = a.as<bool>(); b && numpy()) return ir::Dim(*b);
  refuse_kind(parameter, "integer");
}

ir::Dim ForeignArguments::integer(std::string_view parameter, ir::Dim otherwise) const {
  return given(parameter) ? integer(parameter) : otherwise;
}

std::int64_t ForeignArguments::constant(std::string_view parameter) const {
  const ir::Dim d = integer(parameter);
  if (!d.is_constant()) {
    ask::constant(d);
    refuse_kind(parameter, "known constant");
  }
  return d.constant();
}

std::vector<ir::Dim> ForeignArguments::integers(std::string_view parameter) const {
  const auto* list = (*this)[parameter].as<ForeignList>();
  if (!list) return {integer(parameter)};
  std::vector<ir::Dim> all;
  for (const ForeignArgument& a : *list) {
    const auto* d = a.as<ir::Dim>();
    if (!d) refuse_kind(parameter, "list of integers");
    all.push_back(*d);
  }
  return all;
}

bool ForeignArguments::flag(std::string_view parameter, bool otherwise) const {
  const ForeignArgument& a = (*this)[parameter];
  if (a.is_none()) return otherwise;
  if (const auto* b = a.as<bool>()) return *b;
  const auto* d = numpy() ? a.as<ir::Dim>() : nullptr;
  if (d && d->is_constant()) return d->constant() != 0;
  if (d) ask::constant(*d);
  refuse_kind(parameter, "bool");
}

double ForeignArguments::number(std::string_view parameter, double otherwise) const {
  const ForeignArgument& a = (*this)[parameter];
  if (a.is_none()) return otherwise;
  if (const auto* d = a.as<double>()) return *d;
  if (const auto* b = a.as<bool>()) return *b;
  if (const auto* d = a.as<ir::Dim>(); d && d->is_constant()) return static_cast<double>(d->constant());
  if (const auto* d = a.as<ir::Dim>()) ask::constant(*d);
  refuse_kind(parameter, "known number");
}

std::string ForeignArguments::text(std::string_view parameter, std::string otherwise) const {
  const ForeignArgument& a = (*this)[parameter];
  if (a.is_none()) return otherwise;
  if (const auto* s = a.as<std::string>()) return *s;
  refuse_kind(parameter, "string");
}

std::optional<DType> ForeignArguments::dtype(std::string_view parameter) const {
  const ForeignArgument& a = (*this)[parameter];
  if (a.is_none()) return std::nullopt;
  if (const auto* t = a.as<DType>()) return *t;
  if (const auto* name = a.as<std::string>(); name && numpy())
    if (const auto t = numpy_dtype(*name)) return t;
  refuse_kind(parameter, "dtype");
}

std::optional<ir::Device> ForeignArguments::device() const {
  const ForeignArgument& a = (*this)["device"];
  if (a.is_none()) return std::nullopt;
  const std::string* word = a.as<std::string>();
  if (!word) refuse_kind("device", "device");
  return device_named(*word);
}

ir::Device ForeignArguments::device_named(const std::string& word) const {
  try {
    const ir::Device device = ir::device_named(word);
    if (!device.is_host() && (numpy() || !call_.any_device)) throw Exception(error(Code::unsupported, "{} on the device '{}'", call_.name, word));
    return device.is_host() ? ir::Device() : device;
  } catch (const Exception& e) {
    throw Exception(Code::unsupported, e.what());
  }
}

/// Some of NumPy's functions raise where a 0-d array has no such axis; others do not.
void ForeignArguments::refuse_axis_of_number(std::size_t rank) const {
  if (rank == 0 && numpy()) throw Exception(error(Code::unsupported, "{} along an axis of what has none", call_.name));
}

std::vector<ir::Dim> ForeignArguments::dims(std::string_view parameter, std::size_t rank) const {
  const bool none = !given(parameter);
  if (!none) refuse_axis_of_number(rank);
  std::vector<ir::Dim> all = none ? std::vector<ir::Dim>{} : integers(parameter);
  if (!none && all.empty() && numpy()) throw Exception(Code::unsupported, "an empty tuple of axes");
  if (all.empty())
    for (std::size_t d = 0; d < rank; ++d) all.emplace_back(static_cast<std::int64_t>(d));
  for (ir::Dim& d : all) {
    if (!d.is_constant()) {
      ask::constant(d);
      refuse_kind(parameter, "known dimension");
    }
    d = infer::wrap_dim(d.constant(), rank);
  }
  if (rank == 0) return {};
  return all;
}

std::int64_t ForeignArguments::dim(std::string_view parameter, std::size_t rank) const {
  refuse_axis_of_number(rank);
  return infer::wrap_dim(constant(parameter), rank);
}

const std::complex<double>* ForeignArguments::complex_number(ir::ValueId value) const {
  const auto found = std::ranges::find(complex_numbers_, value, [](const auto& known) { return known.first; });
  return found == complex_numbers_.end() ? nullptr : &found->second;
}

ir::ValueId ForeignArguments::complex_tensor(std::complex<double> number, DType dtype) {
  const DType real = real_type(dtype);
  return builder_.one("complex", {builder_.full(number.real(), real, {}), builder_.full(number.imag(), real, {})});
}

DType ForeignArguments::promoted(std::span<const ir::ValueId> values, Promotion promotion) {
  std::vector<PromotionOperand> operands;
  for (ir::ValueId v : values) operands.push_back({complex_number(v) ? DType::c128 : type(v).dtype, is_number(v), type(v).rank() == 0});
  if (promotion == Promotion::common_float && numpy()) return promote_to_float(operands);
  const DType common = ops::promote(flavour(), operands, call_.default_float);
  return promotion == Promotion::common_float ? float_for(flavour(), common, call_.default_float) : common;
}

void ForeignArguments::round_numbers(std::string_view op, std::span<ir::ValueId> values, Promotion promotion) {
  if (promotion == Promotion::none || values.empty()) return;
  const bool kept = !numpy() && keeps_numbers(op);
  const DType common = promoted(values, promotion);
  if (!is_reduced_float(common)) return;
  for (ir::ValueId& v : kept ? values.first(op == "mul" ? 0 : 1) : values) {  // torch keeps what it multiplies with and divides by
    if (!is_literal(graph(), v)) continue;
    const ir::Literal& literal = graph().value(v).literal;
    const ir::Dim* whole = std::get_if<ir::Dim>(&literal);
    if (const double* number = std::get_if<double>(&literal)) v = builder_.literal(rounded_to(common, *number));
    if (!whole || !whole->is_constant()) continue;
    const double rounded = rounded_to(common, static_cast<double>(whole->constant()));
    if (std::abs(rounded) < 0x1p62) v = builder_.literal(ir::Dim(static_cast<std::int64_t>(rounded)));  // an integer still: it takes part in promotion
  }
}

void ForeignArguments::promote(std::span<ir::ValueId> values, Promotion promotion) {
  if (promotion == Promotion::none || values.empty()) return;
  const DType common = promoted(values, promotion);
  bool any_tensor = false;
  for (ir::ValueId& v : values) {
    if (is_literal(graph(), v)) {
      require_represented(v, common);
      continue;
    }
    any_tensor = true;
    convert({&v, 1}, common);
  }
  if (!any_tensor) values[0] = builder_.cast(tensor(values[0]), common);
}

void ForeignArguments::require_represented(const ForeignArgument& numbers, DType dtype) {
  if (const auto* list = numbers.as<ForeignList>())
    for (const ForeignArgument& part : *list) require_represented(part, dtype);
  else if (numbers.as<ir::Dim>() && is_int(dtype)) require_represented(to_value(numbers), dtype);
}

void ForeignArguments::require_represented(ir::ValueId number, DType dtype) {
  const auto* d = is_literal(graph(), number) ? std::get_if<ir::Dim>(&graph().value(number).literal) : nullptr;
  if (!d || (!d->is_constant() && !is_int(dtype))) return;
  if (d->is_constant() ? represents(dtype, d->constant()) : ask::is_within(*d, range_of(dtype))) return;
  throw Exception(error(Code::unsupported, "the number {} is no value of {}", infer::text(graph(), *d), name_of(dtype)));
}

void ForeignArguments::convert(std::span<ir::ValueId> values, DType dtype) {
  for (ir::ValueId& v : values) {
    if (is_literal(graph(), v)) continue;
    const std::complex<double>* number = complex_number(v);
    v = number && is_complex(dtype) ? complex_tensor(*number, dtype) : builder_.cast(v, dtype);
  }
}

std::vector<ir::ValueId> ForeignArguments::call(std::string_view op, std::vector<ir::ValueId> operands, ir::Attributes attributes) {
  const Op* entry = find_op(op);
  if (!entry) throw Exception(error(Code::unsupported, "there is no op '{}'", op));
  if (!numpy() && keeps_numbers(op) && is_wider_number(graph(), operands.back())) {
    if (const DType half = promoted(operands, entry->promotion); is_reduced_float(half)) {
      convert(operands, DType::f32);
      return {builder_.cast(builder_.call(op, std::move(operands), std::move(attributes))[0], half)};
    }
  }
  promote(operands, entry->promotion);
  const auto complex = [&](ir::ValueId v) { return !is_literal(graph(), v) && is_complex(type(v).dtype); };
  // Only what the call itself is: an op that stands for a part of another function may mean something else there than of real numbers.
  if (entry == &op_ && entry->of_complex && std::ranges::any_of(operands, complex)) {
    of_complex_ = true;
    return entry->of_complex(builder_, OpQuery(graph(), operands, attributes), flavour());
  }
  return builder_.call(op, std::move(operands), std::move(attributes));
}

ir::ValueId ForeignArguments::one(std::string_view op, std::vector<ir::ValueId> operands, ir::Attributes attributes) {
  const auto results = call(op, std::move(operands), std::move(attributes));
  TENON_CHECK(results.size() == 1, "{} has {} results, not one", op, results.size());
  return results[0];
}

ir::ValueId ForeignArguments::tensor(ir::ValueId v) {
  if (!is_literal(graph(), v)) return v;
  const DType kind = type(v).dtype;
  return tensor(v, is_float(kind) ? default_float() : kind);
}

ir::ValueId ForeignArguments::tensor(ir::ValueId v, DType dtype) {
  if (!is_literal(graph(), v)) return builder_.cast(v, dtype);
  if (is_int(dtype)) require_represented(v, dtype);
  return builder_.one("full", {v}, {{"dtype", dtype}, {"size", std::vector<ir::Dim>{}}});
}

}  // namespace tenon::ops
