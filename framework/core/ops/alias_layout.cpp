#include "core/ops/alias_layout.h"

#include <algorithm>

namespace tenon::ops {
namespace {

struct Rule {
  std::string_view alias;
  AliasLayout layout;
};

constexpr AliasLayout kMemoryFormat = {ResultLayout::memory_format};
constexpr Rule kRules[] = {
    {"torch.Tensor.masked_fill", {ResultLayout::row_major}},  // clones self so before it writes
    {"torch.masked_fill", {ResultLayout::row_major}},
    {"torch.nn.functional.logsigmoid", {ResultLayout::row_major}},
    {"torch._C._nn.log_sigmoid", {ResultLayout::row_major}},
    {"torch.batch_norm", {ResultLayout::memory_format, true}},
    {"torch.nn.functional.batch_norm", {ResultLayout::memory_format, true}},
    {"torch.channel_shuffle", kMemoryFormat},
    {"torch.native_channel_shuffle", kMemoryFormat},
    {"torch.nn.functional.pad", kMemoryFormat},
    {"torch.constant_pad_nd", kMemoryFormat},
    {"torch.pixel_shuffle", kMemoryFormat},
    {"torch.pixel_unshuffle", kMemoryFormat},
};

/// Pieces of the tensor are copied into a fresh one.
bool is_circular(const ir::Node& made) {
  const ir::Attribute* mode = made.attribute("mode");
  const auto* text = mode ? std::get_if<std::string>(mode) : nullptr;
  return text && *text == "circular";
}

}  // namespace

std::optional<AliasLayout> layout_of_alias(std::string_view alias, const ir::Node& made) {
  if (alias.starts_with("torch.upsample_") || alias.starts_with("torch._upsample_nearest_exact")) return kMemoryFormat;
  const auto rule = std::ranges::find(kRules, alias, &Rule::alias);
  if (rule == std::end(kRules)) return std::nullopt;
  if (is_circular(made)) return AliasLayout{ResultLayout::row_major};
  return rule->layout;
}

}  // namespace tenon::ops
