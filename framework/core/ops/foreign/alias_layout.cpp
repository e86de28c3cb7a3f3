#include "core/ops/foreign/alias_layout.h"

#include <algorithm>

namespace tenon::ops {
namespace {

struct Rule {
  std::string_view alias;
  AliasLayout layout;
};

constexpr AliasLayout kMemoryFormat = {ResultLayout::memory_format};
constexpr AliasLayout kCopy = {ResultLayout::unknown, false, true};
constexpr AliasLayout kLikeSelf = {ResultLayout::unknown, false, true, true};
constexpr Rule kRules[] = {
    {"torch.clone", kCopy},
    {"torch.Tensor.clone", kCopy},
    {"torch.zeros_like", kCopy},
    {"torch.ones_like", kCopy},
    {"torch.full_like", kCopy},
    {"torch.nan_to_num", kCopy},
    {"torch.Tensor.nan_to_num", kCopy},
    {"torch.flip", kCopy},
    {"torch.Tensor.flip", kCopy},
    {"torch.argsort", kCopy},
    {"torch.Tensor.argsort", kCopy},
    {"torch.msort", kCopy},
    {"torch.Tensor.msort", kCopy},
    {"torch.prelu", kCopy},
    {"torch.Tensor.prelu", kCopy},
    {"torch.nn.functional.prelu", kCopy},
    {"torch.deg2rad", kCopy},
    {"torch.Tensor.deg2rad", kCopy},
    {"torch.rad2deg", kCopy},
    {"torch.Tensor.rad2deg", kCopy},
    {"torch._C._nn.hardtanh", kCopy},
    {"torch.nn.functional.hardtanh", kCopy},
    {"torch._C._nn.relu6", kCopy},
    {"torch.nn.functional.relu6", kCopy},
    {"torch.Tensor.masked_fill", {ResultLayout::row_major}},  // clones self so before it writes
    {"torch.masked_fill", {ResultLayout::row_major}},
    {"torch.nn.functional.logsigmoid", {ResultLayout::row_major}},
    {"torch._C._nn.log_sigmoid", {ResultLayout::row_major}},
    {"torch.rrelu", {ResultLayout::row_major}},
    {"torch.batch_norm", {ResultLayout::memory_format, true}},
    {"torch.nn.functional.batch_norm", {ResultLayout::memory_format, true}},
    {"torch.cov", {ResultLayout::row_major}},
    {"torch.Tensor.cov", {ResultLayout::row_major}},
    {"torch.corrcoef", {ResultLayout::row_major}},
    {"torch.Tensor.corrcoef", {ResultLayout::row_major}},
    {"torch.isin", {ResultLayout::row_major}},
    {"torch.one_hot", {ResultLayout::row_major}},  // zeros that are scattered into
    {"torch.max_pool1d", {ResultLayout::row_major}},  // whose kernel is not that of max_pool2d
    {"torch.nn.functional.max_pool1d", {ResultLayout::row_major}},
    {"torch.channel_shuffle", kMemoryFormat},
    {"torch.native_channel_shuffle", kMemoryFormat},
    {"torch.nn.functional.pad", kMemoryFormat},
    {"torch.constant_pad_nd", kMemoryFormat},
    {"torch.pixel_shuffle", kMemoryFormat},
    {"torch.pixel_unshuffle", kMemoryFormat},
    {"torch._C._nn.max_unpool2d", kMemoryFormat},
    {"torch.addr", kLikeSelf},  // which is an operand of the kernel even where beta is 0
    {"torch.Tensor.addr", kLikeSelf},
};

/// Pieces of the tensor are copied into a fresh one.
bool is_circular(const ir::Node& made) {
  const ir::Attribute* mode = made.attribute("mode");
  const auto* text = mode ? std::get_if<std::string>(mode) : nullptr;
  return text && *text == "circular";
}

/// Padding by nothing, or cutting, is a copy of the part that stays.
bool only_cuts(const ir::Node& made) {
  if (made.op != "pad") return false;
  for (const char* side : {"before", "after"}) {
    const ir::Attribute* amounts = made.attribute(side);
    const auto* numbers = amounts ? std::get_if<std::vector<ir::Dim>>(amounts) : nullptr;
    if (!numbers || !std::ranges::all_of(*numbers, [](const ir::Dim& n) { return n.is_constant() && n.constant() <= 0; })) return false;
  }
  return true;
}

/// torch joins the two parts into which a shift cuts the tensor; an empty part has no memory format, and makes the result row-major.
AliasLayout layout_of_roll(const ir::Node& made, std::span<const ir::Dim> shape) {
  if (made.op != "roll") return {ResultLayout::row_major};  // flattened
  const auto &shifts = std::get<std::vector<ir::Dim>>(*made.attribute("shifts")), &dims = std::get<std::vector<ir::Dim>>(*made.attribute("dims"));
  for (std::size_t k = 0; k < dims.size(); ++k) {
    const std::int64_t dim = dims[k].constant(), rank = static_cast<std::int64_t>(shape.size());
    const ir::Dim& size = shape[static_cast<std::size_t>(dim < 0 ? dim + rank : dim)];
    if (size == ir::Dim(0) || mod(shifts[k], size) == ir::Dim(0)) return {ResultLayout::row_major};
  }
  return kMemoryFormat;
}

std::string_view last_word(std::string_view alias) { return alias.substr(alias.rfind('.') + 1); }

}  // namespace

bool numbers_are_operands(std::string_view alias, const ir::Node& made) {
  // torch has kernels of one operand for these, which take the number as a parameter.
  constexpr std::string_view kParameters[] = {"pow", "__pow__", "float_power", "square", "clamp", "clip", "clamp_min", "clamp_max", "leaky_relu", "threshold",
                                              "hardshrink", "softshrink", "relu6", "elu", "celu", "hardtanh", "round", "logit", "nan_to_num"};
  if (std::ranges::find(kParameters, last_word(alias)) != std::end(kParameters)) return false;
  return made.operands.size() == 2 || made.op == "where";
}

bool operands_are_swapped(std::string_view alias) {
  constexpr std::string_view kReflected[] = {"rsub", "__rsub__", "__rpow__", "__rmod__", "__rfloordiv__", "__rlshift__", "__rrshift__"};
  return alias.starts_with("torch.") && std::ranges::find(kReflected, last_word(alias)) != std::end(kReflected);
}

std::uint32_t writes_of_alias(std::string_view alias, bool has_elements) {
  const std::string_view word = last_word(alias);
  if (word == "one_hot") return has_elements ? 2 : 0;
  return word == "quantile" || word == "nanquantile" ? 2 : word == "isclose" || word == "matrix_rank" ? 1 : 0;
}

std::optional<AliasLayout> layout_of_alias(std::string_view alias, const ir::Node& made, std::span<const ir::Dim> shape, bool number_first) {
  if (number_first && made.op == "pow") return AliasLayout{ResultLayout::row_major};  // a kernel of its own, which is told of no operand
  if (last_word(alias) == "roll") return layout_of_roll(made, shape);
  if (alias == "torch.nn.functional.pad" || alias == "torch.constant_pad_nd")
    if (only_cuts(made) && !is_circular(made)) return kCopy;
  if (alias.starts_with("torch.upsample_") || alias.starts_with("torch._upsample_nearest_exact")) return kMemoryFormat;
  const auto rule = std::ranges::find(kRules, alias, &Rule::alias);
  if (rule == std::end(kRules)) return std::nullopt;
  if (is_circular(made)) return AliasLayout{ResultLayout::row_major};
  return rule->layout;
}

}  // namespace tenon::ops
