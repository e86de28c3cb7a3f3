#include "core/ops/reference/sample.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "core/ops/build/node_builder.h"
#include "core/ops/infer.h"
#include "core/ops/reference/scalar_kernels.h"

namespace tenon::ops {
namespace {

/// SplitMix64 (Steele, Lea, Flood 2014): the same numbers on every machine.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15ull;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }
  /// In [0, 1).
  double unit() { return static_cast<double>(next() >> 11) * 0x1p-53; }
  double between(double low, double high) { return low + unit() * (high - low); }
  std::int64_t integer(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(next() % static_cast<std::uint64_t>(high - low + 1));
  }
  /// The sum of twelve uniform numbers: near enough to a normal distribution, and the same everywhere.
  double normal() {
    double sum = -6;
    for (int i = 0; i < 12; ++i) sum += unit();
    return sum;
  }

 private:
  std::uint64_t state_;
};

double special_float(Random& random) {
  constexpr double kSpecial[] = {NAN, INFINITY, -INFINITY, 0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.5, -2.5, 1e-30, 1e30, -1e30};
  const std::uint64_t pick = random.next() % 20;
  return pick < std::size(kSpecial) ? kSpecial[pick] : 2 * random.normal();
}

double float_element(Random& random, Fill fill) {
  switch (fill) {
    case Fill::positive: return random.between(0.1, 4);
    case Fill::unit: return random.between(-1, 1);
    case Fill::probability: return random.between(0.02, 0.98);
    case Fill::special: return special_float(random);
    case Fill::nonzero: {
      const double x = 2 * random.normal();
      return std::copysign(std::fabs(x) + 0.25, x);
    }
    default: return 2 * random.normal();
  }
}

std::int64_t least(DType t) {
  switch (t) {
    case DType::i8: return -128;
    case DType::i16: return -32768;
    case DType::i32: return INT32_MIN;
    case DType::i64: return INT64_MIN;
    default: return 0;
  }
}

std::int64_t most(DType t) {
  switch (t) {
    case DType::u8: return 255;
    case DType::i8: return 127;
    case DType::i16: return 32767;
    case DType::i32: return INT32_MAX;
    default: return INT64_MAX;
  }
}

std::int64_t integer_element(Random& random, const SampleOperand& operand) {
  const bool positive = operand.dtype == DType::u8;
  switch (operand.fill) {
    case Fill::index: return random.integer(0, std::max<std::int64_t>(operand.bound - 1, 0));
    case Fill::signed_index: return random.integer(-operand.bound, operand.bound - 1);
    case Fill::positive: return random.integer(1, 9);
    case Fill::unit: return random.integer(positive ? 0 : -1, 1);
    case Fill::special:
      if (const std::uint64_t pick = random.next() % 8; pick < 2) return pick ? least(operand.dtype) : most(operand.dtype);
      return random.integer(positive ? 0 : -9, 9);
    case Fill::nonzero: {
      const std::int64_t x = random.integer(positive ? 0 : -9, 9);
      return x == 0 ? 3 : x;
    }
    default: return random.integer(positive ? 0 : -9, 9);
  }
}

/// A random order of 0 … n - 1, for elements that are all different.
std::vector<std::int64_t> shuffled(Random& random, std::int64_t n) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  for (std::int64_t i = n - 1; i > 0; --i)
    std::swap(order[static_cast<std::size_t>(i)], order[static_cast<std::size_t>(random.integer(0, i))]);
  return order;
}

/// Complex elements as their parts, along a last dimension of two.
TensorView parts_of(const TensorView& t) {
  TensorView parts{t.data, real_type(t.dtype), t.shape, t.strides};
  for (std::int64_t& stride : parts.strides) stride *= 2;
  parts.shape.push_back(2);
  parts.strides.push_back(1);
  return parts;
}

void fill(const TensorView& storage, const SampleOperand& operand, Random& random) {
  if (is_complex(storage.dtype)) {
    SampleOperand parts = operand;
    parts.dtype = real_type(storage.dtype);
    return fill(parts_of(storage), parts, random);
  }
  const std::int64_t n = std::accumulate(storage.shape.begin(), storage.shape.end(), std::int64_t{1}, std::multiplies());
  const auto order = operand.fill == Fill::distinct ? shuffled(random, n) : std::vector<std::int64_t>{};
  auto* bytes = static_cast<std::byte*>(storage.data);
  for (std::int64_t i = 0; i < n; ++i) {
    double f = 0;
    std::int64_t integer = 0;
    const bool is_floating = is_float(operand.dtype);
    if (!order.empty())
      integer = order[static_cast<std::size_t>(i)], f = (static_cast<double>(integer) - static_cast<double>(n) / 2) * 0.5;
    else if (is_floating)
      f = float_element(random, operand.fill);
    else
      integer = is_bool(operand.dtype) ? random.integer(operand.fill == Fill::positive ? 1 : 0, 1) : integer_element(random, operand);
    if (is_floating)
      reference::convert_strided(DType::f64, &f, 1, operand.dtype, bytes + i * static_cast<std::int64_t>(size_of(operand.dtype)), 1, 1);
    else
      reference::convert_strided(DType::i64, &integer, 1, operand.dtype, bytes + i * static_cast<std::int64_t>(size_of(operand.dtype)), 1,
                                 1);
  }
}

/// The lowest and the highest element offset of a strided view.
std::pair<std::int64_t, std::int64_t> extent_of(const SampleOperand& operand) {
  std::int64_t low = 0, high = 0;
  for (std::size_t d = 0; d < operand.shape.size(); ++d) {
    const std::int64_t reach = (operand.shape[d] - 1) * (*operand.strides)[d];
    (reach < 0 ? low : high) += reach;
  }
  return {low, high};
}

SampleInput make_input(const SampleOperand& operand, Random& random) {
  if (!operand.strides || std::ranges::find(operand.shape, 0) != operand.shape.end()) {
    SampleInput input{HostTensor(operand.dtype, operand.shape), {}};
    fill(input.storage.view(), operand, random);
    input.view = input.storage.view();
    return input;
  }
  const auto [low, high] = extent_of(operand);
  // Some elements of slack in front, so that a kernel that forgets the offset reads something else.
  constexpr std::int64_t kSlack = 3;
  SampleInput input{HostTensor(operand.dtype, {high - low + 1 + 2 * kSlack}), {}};
  fill(input.storage.view(), operand, random);
  const std::int64_t offset = kSlack - low;
  input.view = {static_cast<std::byte*>(input.storage.data()) + offset * static_cast<std::int64_t>(size_of(operand.dtype)), operand.dtype,
                operand.shape, *operand.strides};
  return input;
}

struct Tolerance {
  double relative, absolute;
};

/// torch.testing.assert_close's tolerances by dtype (float64 somewhat wider than its own 1e-7).
Tolerance tolerance_of(DType t) {
  switch (t) {
    case DType::f16: return {2e-3, 1e-4};
    case DType::bf16: return {1.6e-2, 1e-4};
    case DType::f32: return {4e-6, 2e-6};
    default: return {1e-9, 1e-11};
  }
}

double element_at(const TensorView& t, std::span<const std::int64_t> at) {
  const std::int64_t offset = std::inner_product(at.begin(), at.end(), t.strides.begin(), std::int64_t{0});
  double value = 0;
  reference::gather(t.dtype, t.data, &offset, DType::f64, &value, 1);
  return value;
}

std::int64_t integer_at(const TensorView& t, std::span<const std::int64_t> at) {
  const std::int64_t offset = std::inner_product(at.begin(), at.end(), t.strides.begin(), std::int64_t{0});
  std::int64_t value = 0;
  reference::gather(t.dtype, t.data, &offset, DType::i64, &value, 1);
  return value;
}

/// What the judge's value becomes in the dtype of the result: an overflow to infinity is no error.
double rounded_to(DType t, double x) {
  std::uint64_t bits = 0;
  double back = 0;
  reference::convert_strided(DType::f64, &x, 1, t, &bits, 1, 1);
  reference::convert_strided(t, &bits, 1, DType::f64, &back, 1, 1);
  return back;
}

bool agrees(double got, double want, Tolerance t, DType dtype) {
  if (std::isnan(want) || std::isnan(got)) return std::isnan(want) && std::isnan(got);
  want = rounded_to(dtype, want);
  if (std::isinf(want) || std::isinf(got)) return got == want;
  return std::fabs(got - want) <= t.absolute + t.relative * std::fabs(want);
}

std::string place(std::span<const std::int64_t> at) { return fmt::format("[{}]", fmt::join(at, ", ")); }

}  // namespace

std::vector<Sample> samples_of(const Op& op) {
  std::vector<Sample> samples = op.samples ? op.samples() : std::vector<Sample>{};
  std::map<std::string, int> seen;
  for (Sample& s : samples) {
    std::ranges::sort(s.attributes, {}, &ir::NamedAttribute::name);
    if (const int n = seen[s.name]++) s.name += fmt::format("_{}", n + 1);
  }
  return samples;
}

ir::Graph sample_graph(const Op& op, const Sample& sample) {
  ir::Graph graph;
  std::vector<ir::ValueId> operands;
  for (const SampleOperand& o : sample.operands) {
    if (o.literal) {
      operands.push_back(graph.add_literal(*o.literal));
      continue;
    }
    ir::Type type = ir::Type::tensor(o.dtype, ir::Shape(o.shape.begin(), o.shape.end()));
    if (o.strides) type.strides = ir::Shape(o.strides->begin(), o.strides->end());
    operands.push_back(graph.add_input(std::move(type), fmt::format("x{}", graph.inputs().size())));
  }
  NodeBuilder builder(graph);
  for (ir::ValueId v : builder.call(op.name, std::move(operands), sample.attributes)) graph.add_output({.value = v});
  return graph;
}

std::vector<SampleInput> sample_inputs(const Sample& sample, std::uint64_t seed) {
  std::vector<SampleInput> inputs;
  for (const SampleOperand& o : sample.operands) {
    if (o.literal) continue;
    Random random(seed * 1000003 + inputs.size());
    inputs.push_back(make_input(o, random));
  }
  return inputs;
}

std::optional<std::string> first_difference(const TensorView& got, const TensorView& want, double tolerance) {
  if (got.shape != want.shape) return fmt::format("shape {} instead of {}", place(got.shape), place(want.shape));
  if (is_float(got.dtype) != is_float(want.dtype)) return fmt::format("dtype {} instead of {}", name_of(got.dtype), name_of(want.dtype));
  if (is_complex(got.dtype) != is_complex(want.dtype)) return fmt::format("dtype {} instead of {}", name_of(got.dtype), name_of(want.dtype));
  if (is_complex(got.dtype)) return first_difference(parts_of(got), parts_of(want), tolerance);
  if (std::ranges::find(got.shape, 0) != got.shape.end()) return std::nullopt;
  Tolerance t = tolerance_of(got.dtype);
  t = {t.relative * tolerance, t.absolute * tolerance};
  std::vector<std::int64_t> at(got.shape.size(), 0);
  for (;;) {
    if (is_float(got.dtype)) {
      const double a = element_at(got, at), b = element_at(want, at);
      if (!agrees(a, b, t, got.dtype)) return fmt::format("{} instead of {} at {}", a, b, place(at));
    } else if (const std::int64_t a = integer_at(got, at), b = integer_at(want, at); a != b) {
      return fmt::format("{} instead of {} at {}", a, b, place(at));
    }
    std::size_t d = at.size();
    while (d > 0 && ++at[d - 1] == got.shape[d - 1]) at[--d] = 0;
    if (d == 0) return std::nullopt;
  }
}

}  // namespace tenon::ops
