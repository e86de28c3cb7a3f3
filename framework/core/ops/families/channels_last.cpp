// Convolutions of pictures and weights whose channels lie last, for devices on which a library is faster at these.
#include <algorithm>

#include "core/ops/catalog.h"
#include "core/ops/notation/family.h"
#include "core/ops/notation/move.h"

namespace tenon::ops {
namespace {

using ir::Dim;
using ir::Shape;

/// Where the dimensions come from when the last is to be the second one, and the other way round.
std::vector<std::int64_t> channels_second(std::size_t rank) {
  const auto last = static_cast<std::int64_t>(rank) - 1;
  std::vector<std::int64_t> dims{0, last};
  for (std::int64_t d = 1; d < last; ++d) dims.push_back(d);
  return dims;
}

std::vector<std::int64_t> channels_last(std::size_t rank) {
  std::vector<std::int64_t> dims{0};
  for (std::int64_t d = 2; d < static_cast<std::int64_t>(rank); ++d) dims.push_back(d);
  dims.push_back(1);
  return dims;
}

Shape arranged(const Shape& shape, const std::vector<std::int64_t>& dims) {
  Shape to;
  for (const std::int64_t d : dims) to.push_back(shape[static_cast<std::size_t>(d)]);
  return to;
}

/// The first operands, pictures and weights, have their channels last, and so has what comes of them.
constexpr std::size_t kPermuted = 2;

/// What the op gives of the same pictures and weights with their channels second.
Result<infer::Types> infer_as(std::string_view plain, const OpQuery& q) {
  infer::require_operands(q, kPermuted, 3);
  for (std::size_t i = 0; i < kPermuted; ++i) TENON_USER_CHECK(q.type(i).rank() >= 3, "takes pictures and weights of at least 3 dimensions, not {}", q.type(i).rank());
  ir::Graph pictures;
  for (const ir::SymbolInfo& symbol : q.graph().symbols()) pictures.add_symbol(symbol);
  Values operands;
  for (std::size_t i = 0; i < q.operand_count(); ++i) {
    const ir::Type& type = q.type(i);
    const Shape shape = i < kPermuted ? arranged(type.shape, channels_second(type.rank())) : type.shape;
    operands.push_back(pictures.add_input(ir::Type::tensor(type.dtype, shape, type.device)));
  }
  const auto found = find_op(plain)->infer(OpQuery(pictures, operands, q.attributes()));
  if (!found) return found.error();
  const ir::Type& type = found->front();
  return infer::one(q, type.dtype, arranged(type.shape, channels_last(type.rank())));
}

Values decompose_as(std::string_view plain, NodeBuilder& b, const OpQuery& q) {
  Values operands(q.operands().begin(), q.operands().end());
  const std::size_t rank = q.type(0).rank();
  for (std::size_t i = 0; i < kPermuted; ++i) operands[i] = permute_by(b, operands[i], channels_second(rank));
  return {permute_by(b, b.one(std::string(plain), operands, q.attributes()), channels_last(rank))};
}

/// The op of that name with what it is made of arranged anew.
Op arranged_op(const char* plain, const char* name, const char* schema, std::vector<Alias> aliases) {
  Op op;
  op.name = name;
  op.schema = schema;
  op.aliases = std::move(aliases);
  op.infer = [plain](const OpQuery& q) { return infer_as(plain, q); };
  op.traits.is_inferred_whole = true;
  op.decompose = [plain](NodeBuilder& b, const OpQuery& q) { return decompose_as(plain, b, q); };
  op.samples = [plain] {
    std::vector<Sample> all = find_op(plain)->samples();
    for (Sample& sample : all)
      for (std::size_t i = 0; i < kPermuted; ++i) {
        auto& shape = sample.operands[i].shape;
        std::rotate(shape.begin() + 1, shape.begin() + 2, shape.end());
      }
    return all;
  };
  return op;
}

std::vector<Sample> convolution_samples() {
  std::vector<Sample> all;
  const auto add = [&](std::string name, DType t, std::vector<std::vector<std::int64_t>> shapes, ir::Attributes attributes) {
    Sample sample{.name = std::move(name), .attributes = std::move(attributes), .tolerance = 8};
    for (auto& shape : shapes) sample.operands.push_back({.dtype = t, .shape = shape, .fill = Fill::unit});
    all.push_back(std::move(sample));
  };
  const auto dims = [](std::int64_t a, std::int64_t b) { return std::vector<Dim>{Dim(a), Dim(b)}; };
  for (DType t : {DType::f32, DType::f64, DType::f16, DType::bf16})
    add(std::string(name_of(t)), t, {{2, 6, 5, 3}, {4, 3, 2, 3}, {4}}, {{"padding", dims(1, 1)}, {"stride", dims(2, 1)}});
  add("no_bias", DType::f32, {{1, 5, 5, 4}, {6, 3, 3, 2}}, {{"dilation", dims(1, 2)}, {"groups", Dim(2)}, {"padding", dims(0, 2)}});
  add("one_dimension", DType::f32, {{2, 9, 4}, {5, 3, 4}}, {});
  return all;
}

Op convolution_channels_last_op() {
  Op op = arranged_op("convolution", "convolution_channels_last",
                      "(Tensor input, Tensor weight, Tensor? bias=None, *, int[] stride=1, int[] padding=0, int[] dilation=1, int groups=1) -> Tensor",
                      names({"tenon._by_torch.convolution_channels_last"}, "(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1)"));
  op.samples = convolution_samples;
  return op;
}

Op conv_weight_sum_channels_last_op() {
  return arranged_op("conv_weight_sum", "conv_weight_sum_channels_last", "(Tensor input, Tensor gradient, *, int[] kernel, int[] stride, int[] before, int[] dilation, int groups=1) -> Tensor",
                     names({"tenon._by_torch.conv_weight_sum_channels_last"}, "(input, gradient, kernel, stride, before, dilation, groups=1)"));
}

Op conv_input_sum_channels_last_op() {
  return arranged_op("conv_input_sum", "conv_input_sum_channels_last", "(Tensor weight, Tensor gradient, *, int[] sizes, int[] stride, int[] before, int[] dilation, int groups=1) -> Tensor",
                     names({"tenon._by_torch.conv_input_sum_channels_last"}, "(weight, gradient, sizes, stride, before, dilation, groups=1)"));
}

}  // namespace

Family channels_last_ops() { return {convolution_channels_last_op(), conv_weight_sum_channels_last_op(), conv_input_sum_channels_last_op()}; }

}  // namespace tenon::ops
