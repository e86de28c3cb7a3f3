// Pooling over sliding windows and over adaptive ones.
#include <algorithm>

#include "core/ops/gradients/gradients.h"
#include "core/ops/notation/move.h"
#include "core/ops/notation/reduce.h"
#include "core/ops/notation/window.h"
#include "core/ops/size_questions.h"

namespace tenon::ops {
namespace {

using ir::Dim;
using ir::Shape;

/// The windows of a pooling op. Adaptive ones (attribute `output_size`) divide a dimension into `out` parts that may overlap by one
/// element: part o reads [floor(o * in / out), ceil((o + 1) * in / out)).
struct Pooling {
  std::vector<WindowDim> windows;
  bool adaptive = false;
  bool ceil_mode = false;

  Pooling(const OpQuery& q, std::span<const Dim> spatial) : adaptive(q.find("output_size")), ceil_mode(q.flag("ceil_mode")) {
    if (adaptive) {
      const auto out = q.integers("output_size");
      TENON_USER_CHECK(out.size() == spatial.size(), "output_size has {} numbers for {} spatial dimensions", out.size(), spatial.size());
      for (std::size_t d = 0; d < out.size(); ++d) windows.push_back(part(spatial[d], out[d]));
      return;
    }
    const std::size_t rank = spatial.size();
    const auto kernel = per_dim(q, "kernel_size", rank, 1), stride = per_dim(q, "stride", rank, 1);
    const auto padding = per_dim(q, "padding", rank, 0), dilation = per_dim(q, "dilation", rank, 1);
    for (std::size_t d = 0; d < rank; ++d) windows.push_back(sliding(q, spatial[d], {Dim(0), Dim(0), kernel[d], stride[d], dilation[d], padding[d], padding[d]}));
  }

  static WindowDim part(const Dim& in, const Dim& out) {
    if (!in.is_constant() || !out.is_constant()) throw Exception(Code::unsupported, "adaptive pooling of a size that is not known");
    const std::int64_t n = in.constant(), m = out.constant();
    TENON_USER_CHECK(n > 0 || m == 0, "adaptive pooling of an empty dimension");
    constexpr std::int64_t kMostParts = 1 << 20, kLongest = std::int64_t{1} << 40;
    if (m > kMostParts || n > kLongest) throw Exception(error(Code::unsupported, "adaptive pooling of {} elements into {} parts", n, m));
    std::int64_t longest = 0;
    for (std::int64_t o = 0; o < m; ++o) longest = std::max(longest, ((o + 1) * n + m - 1) / m - o * n / m);
    return {in, out, longest, 1, 1, 0, 0};
  }

  WindowDim sliding(const OpQuery& q, const Dim& in, WindowDim w) const {
    TENON_USER_CHECK(w.kernel > 0 && w.stride > 0 && w.dilation > 0, "kernel size, stride and dilation must be greater than zero");
    TENON_USER_CHECK(w.before >= 0 && w.before <= (w.dilation * (w.kernel - 1) + 1) / 2, "pad should be at most half of effective kernel size, but got pad={}, kernel_size={}", w.before, w.kernel);
    w.in = in;
    w.out = window_count(q.graph(), w, ceil_mode);
    TENON_USER_CHECK(infer::taken_positive_or_0(q.graph(), w.out - Dim(1)), "Output size is too small: a dimension of {} under a kernel of {}", infer::text(q.graph(), in), w.kernel);
    return w;
  }

  /// The first element of part `o`, and one past the last.
  std::pair<Scalar, Scalar> bounds(Scalars& s, const WindowDim& w, Scalar o) const {
    IndexMath m(s);
    if (mod(w.in, w.out) == Dim(0)) {
      const Scalar first = m.mul(o, floor_div(w.in, w.out));
      return {first, m.add(first, floor_div(w.in, w.out))};
    }
    return {m.floor_div(m.mul(o, w.in), w.out), m.floor_div(m.add(m.mul(o, w.in), w.in + w.out - Dim(1)), w.out)};
  }

  WindowPlace place(Scalars& s, const WindowDim& w, Scalar o, Scalar k) const {
    if (!adaptive) {
      WindowDim reaching = w;
      reaching.after += ceil_mode ? w.stride : 0;  // the last window may reach beyond the padding
      return window_place(s, reaching, o, k);
    }
    const auto [first, end] = bounds(s, w, o);
    const Scalar index = w.kernel == 1 ? first : s.add(first, k);
    const bool even = mod(w.in, w.out) == Dim(0);
    return {index, even ? std::nullopt : std::optional(s.lt(index, end))};
  }
};

/// The trailing dimensions that a pooling op slides over: as many as its attribute has numbers.
std::span<const Dim> spatial_dims(const OpQuery& q) {
  const std::size_t rank = q.integers(q.find("output_size") ? "output_size" : "kernel_size").size();
  const Shape& shape = q.type(0).shape;
  TENON_USER_CHECK(rank >= 1 && shape.size() >= rank, "{} spatial dimensions of a tensor of {}", rank, shape.size());
  return std::span(shape).subspan(shape.size() - rank);
}

/// One reduction over windows: extents, the masked element, and its row-major place among the spatial dimensions.
struct Windows {
  Pooling pooling;
  Shape extents, result;
  std::size_t lead;

  explicit Windows(const OpQuery& q) : pooling(q, spatial_dims(q)), lead(q.type(0).rank() - pooling.windows.size()) {
    result.assign(q.type(0).shape.begin(), q.type(0).shape.begin() + static_cast<std::ptrdiff_t>(lead));
    for (const WindowDim& w : pooling.windows) result.push_back(w.out);
    extents = result;
    for (const WindowDim& w : pooling.windows) extents.emplace_back(w.kernel);
  }

  struct Element {
    Scalar value, place;  // in the plane, row-major
  };
  Element element(Scalars& s, const OpQuery& q, const std::function<Scalar(Scalars&, DType)>& outside) const {
    IndexMath m(s);
    std::vector<Scalar> index = m.loops(lead);
    std::optional<Scalar> inside, place;
    Dim plane = 1;  // elements of the dimensions that windows move in
    for (std::size_t d = 0; d < pooling.windows.size(); ++d) {
      const WindowPlace p = pooling.place(s, pooling.windows[d], s.loop_index(lead + d), s.loop_index(result.size() + d));
      index.push_back(p.index);
      inside = both(s, inside, p.inside);
      place = place ? s.add(m.mul(*place, pooling.windows[d].in), p.index) : p.index;
      plane = plane * pooling.windows[d].in;
    }
    const DType stored = q.type(0).dtype, t = compute_type(stored);
    place = s.convert(*place, place_type(plane));
    if (!inside) return {s.load(0, stored, index), *place};
    return {s.load_if(*inside, 0, stored, index, outside(s, t)), s.select(*inside, *place, extreme_value(s, place->dtype, true))};
  }
};

constexpr const char* kWindowParameters = "int[]? kernel_size=None, int[] stride=1, int[] padding=0, int[] dilation=1, bool ceil_mode=False, int[]? output_size=None";

Scalar lowest(Scalars& s, DType t) { return extreme_value(s, t, false); }

Op window_op(std::string name, std::string results, std::function<LoopBody(const OpQuery&)> loop) {
  Op op;
  op.name = std::move(name);
  op.schema = fmt::format("(Tensor self, *, {}) -> {}", kWindowParameters, results);
  const bool two = results != "Tensor";
  op.infer = [two](const OpQuery& q) -> Result<infer::Types> {
    infer::require_operands(q, 1, 1);
    const Shape shape = Windows(q).result;
    infer::Types types = infer::one(q, q.type(0).dtype, shape);
    if (two) types.push_back(ir::Type::tensor(DType::i64, shape, infer::device(q)));
    return types;
  };
  op.loop = std::move(loop);
  op.samples = [] {
    std::vector<Sample> all;
    const auto dims = [](std::int64_t a, std::int64_t b) { return std::vector<Dim>{Dim(a), Dim(b)}; };
    for (DType t : {DType::f32, DType::f64, DType::f16, DType::i64})
      all.push_back({.name = std::string(name_of(t)),
                     .operands = {{.dtype = t, .shape = {2, 3, 8, 7}, .fill = Fill::distinct}},
                     .attributes = {{"kernel_size", dims(3, 2)}, {"padding", dims(1, 1)}, {"stride", dims(2, 2)}}});
    all.push_back({.name = "ceil", .operands = {{.shape = {3, 8}}}, .attributes = {{"ceil_mode", true}, {"kernel_size", std::vector<Dim>{3}}, {"stride", std::vector<Dim>{2}}}});
    all.push_back({.name = "dilated", .operands = {{.shape = {2, 9, 9}}}, .attributes = {{"dilation", dims(2, 3)}, {"kernel_size", dims(3, 2)}}});
    all.push_back({.name = "adaptive", .operands = {{.shape = {2, 7, 6}}}, .attributes = {{"output_size", dims(3, 4)}}});
    all.push_back({.name = "adaptive_even", .operands = {{.shape = {2, 8, 6}}}, .attributes = {{"output_size", dims(4, 1)}}});
    all.push_back({.name = "special", .operands = {{.shape = {6, 12}, .fill = Fill::special}}, .attributes = {{"kernel_size", dims(2, 3)}, {"stride", dims(2, 3)}}});
    return all;
  };
  return op;
}

LoopBody max_loop(const OpQuery& q) {
  const Windows w(q);
  const DType t = compute_type(q.type(0).dtype);
  Scalars s, init;
  s.result(w.element(s, q, lowest).value);
  init.result(lowest(init, t));
  Scalars larger;  // of zeros of both signs the one that came first
  larger.result(larger.maximum(larger.parameter(1, t), larger.parameter(0, t)));
  Reducer r = simple_reducer(t, 0, Primitive::maximum);
  r.init = init.take();
  r.combine = larger.take();
  return {.extents = w.extents, .reduced = w.pooling.windows.size(), .element = s.take(), .reducer = std::move(r)};
}

LoopBody max_with_indices_loop(const OpQuery& q) {
  const Windows w(q);
  const DType t = compute_type(q.type(0).dtype);
  Scalars s;
  const Windows::Element e = w.element(s, q, lowest);
  s.result(e.value);
  s.result(e.place);
  return {.extents = w.extents, .reduced = w.pooling.windows.size(), .element = s.take(), .reducer = place_reducer(t, e.place.dtype, true, NanPlace::last, true)};
}

LoopBody sum_loop(const OpQuery& q) {
  const Windows w(q);
  const DType t = compute_type(q.type(0).dtype);
  Scalars s;
  s.result(w.element(s, q, [](Scalars& z, DType zero) { return z.constant(zero, std::int64_t{0}); }).value);
  return {.extents = w.extents, .reduced = w.pooling.windows.size(), .element = s.take(), .reducer = simple_reducer(t, 0, Primitive::add)};
}

// ---- averages

/// How many elements each window counts, with the padding or without; the operand only gives its spatial sizes.
LoopBody size_loop(const OpQuery& q) {
  const std::vector<Dim> spatial = q.integers("size");
  const Pooling pooling(q, spatial);
  const bool padding = q.flag("count_include_pad", false);
  Shape extents;
  for (const WindowDim& w : pooling.windows) extents.push_back(w.out);
  return elementwise(extents, [&](Scalars& s) {
    IndexMath m(s);
    std::optional<Scalar> count;
    for (std::size_t d = 0; d < pooling.windows.size(); ++d) {
      const WindowDim& w = pooling.windows[d];
      const Scalar o = s.loop_index(d);
      auto [first, end] = pooling.adaptive ? pooling.bounds(s, w, o) : std::pair(m.add(m.mul(o, Dim(w.stride)), Dim(-w.before)), o);
      if (!pooling.adaptive) {
        end = s.minimum(m.add(first, Dim(w.kernel)), m.of(w.in + Dim(padding ? w.after : 0)));
        if (!padding) first = s.maximum(first, m.of(0));
      }
      const Scalar size = s.sub(end, first);
      count = count ? s.mul(*count, size) : size;
    }
    return s.convert(*count, compute_type(q.dtype("dtype")));
  });
}

Op window_size_op() {
  Op op;
  op.name = "window_size";
  op.schema = fmt::format("(*, int[] size, {}, bool count_include_pad=False, ScalarType dtype, str? device=None) -> Tensor", kWindowParameters);
  op.traits.creates = true;
  op.infer = [](const OpQuery& q) -> Result<infer::Types> {
    infer::require_operands(q, 0, 0);
    const std::vector<Dim> spatial = q.integers("size");
    Shape shape;
    for (const WindowDim& w : Pooling(q, spatial).windows) shape.push_back(w.out);
    return infer::created(q, q.dtype("dtype"), std::move(shape));
  };
  op.loop = size_loop;
  op.no_grad_reason = "it has no operands";
  op.samples = [] {
    const std::vector<Dim> size{8, 7}, kernel{3, 2}, padding{1, 1}, stride{2, 2};
    return std::vector<Sample>{
        {.name = "inside", .attributes = {{"ceil_mode", true}, {"dtype", DType::f32}, {"kernel_size", kernel}, {"padding", padding}, {"size", size}, {"stride", stride}}},
        {.name = "padded", .attributes = {{"ceil_mode", true}, {"count_include_pad", true}, {"dtype", DType::i64}, {"kernel_size", kernel}, {"padding", padding}, {"size", size}, {"stride", stride}}},
        {.name = "adaptive", .attributes = {{"dtype", DType::f64}, {"output_size", std::vector<Dim>{3, 4}}, {"size", size}}}};
  };
  return op;
}

/// What all windows count alike: a literal; nothing where they differ.
std::optional<std::int64_t> common_count(const OpQuery& q) {
  const Pooling pooling(q, spatial_dims(q));
  std::int64_t count = 1;
  for (const WindowDim& w : pooling.windows) {
    if (pooling.adaptive ? !(mod(w.in, w.out) == Dim(0)) : pooling.ceil_mode || (w.before > 0 && !q.flag("count_include_pad", true))) return {};
    count *= w.kernel;
  }
  return q.constant_integer("divisor_override", count);
}

/// Whether an adaptive window is all of its picture.
bool is_one_part(const std::vector<Dim>& output_size) {
  return std::ranges::all_of(output_size, [](const Dim& d) { return d == Dim(1); });
}

/// The sums of windows; where each is a whole picture of a device, of its dimensions: the gradient of that is no scatter.
ir::ValueId sum_of_windows(NodeBuilder& b, const OpQuery& q, ir::ValueId x, ir::Attributes windows) {
  const ir::Type type = b.graph().type(x);
  const bool whole = q.find("output_size") && is_one_part(q.integers("output_size"));
  if (!whole || type.device.is_host()) return b.one("window_sum", {x}, std::move(windows));
  return b.one("sum", {x}, {{"dim", last_dims(type.rank(), q.integers("output_size").size())}, {"dtype", type.dtype}, {"keepdim", true}});
}

Values decompose_average(NodeBuilder& b, const OpQuery& q) {
  const DType result = q.type(0).dtype, t = compute_type(result);
  const auto count = q.find("divisor_override") ? std::optional(q.constant_integer("divisor_override")) : common_count(q);
  ir::Attributes windows, sizes{{"dtype", t}, {"size", std::vector<Dim>(spatial_dims(q).begin(), spatial_dims(q).end())}};
  for (const ir::NamedAttribute& a : q.attributes()) {
    if (a.name == "divisor_override") continue;
    sizes.push_back(a);
    if (a.name != "count_include_pad") windows.push_back(a);
  }
  if (!q.find("count_include_pad") && !q.find("output_size")) sizes.push_back({"count_include_pad", true});
  const ir::ValueId sum = sum_of_windows(b, q, b.cast(q.operands()[0], t), std::move(windows));
  const ir::ValueId divisor = !count ? b.one("window_size", {}, sizes) : is_float(t) ? b.literal(static_cast<double>(*count)) : b.literal(Dim(*count));
  return {b.cast(b.one(is_float(t) ? "div" : "trunc_divide", {sum, divisor}), result)};
}

Op avg_pool_op() {
  Op op = window_op("avg_pool", "Tensor", {});
  op.traits.layout = ResultLayout::row_major_of_row_major;
  op.schema = fmt::format("(Tensor self, *, {}, bool count_include_pad=True, int? divisor_override=None) -> Tensor", kWindowParameters);
  op.infer = [sums = op.infer](const OpQuery& q) -> Result<infer::Types> {
    auto types = sums(q);
    TENON_USER_CHECK(q.type(0).dtype != DType::b8, "takes integer and float tensors; given bool");
    if (q.find("divisor_override")) q.constant_integer("divisor_override");
    for (const WindowDim& w : Pooling(q, spatial_dims(q)).windows) TENON_USER_CHECK(!(w.out == Dim(0)), "an average over no windows");
    return types;
  };
  op.traits.is_inferred_whole = true;
  op.decompose = decompose_average;
  op.samples = [samples = op.samples] {
    auto all = samples();
    for (Sample& s : all) s.tolerance = 4;
    std::erase_if(all, [](const Sample& s) { return s.name == "special"; });  // sums of huge numbers that cancel
    const std::vector<Dim> kernel{3, 2}, padding{1, 1}, stride{2, 2};
    all.push_back({.name = "without_padding", .operands = {{.shape = {2, 8, 7}}}, .attributes = {{"count_include_pad", false}, {"kernel_size", kernel}, {"padding", padding}, {"stride", stride}}, .tolerance = 4});
    all.push_back({.name = "override", .operands = {{.shape = {2, 8, 7}}}, .attributes = {{"divisor_override", Dim(5)}, {"kernel_size", kernel}}, .tolerance = 4});
    return all;
  };
  return op;
}

// ---- foreign calls

ir::Attributes pool_attributes(ForeignArguments& a, std::size_t rank) {
  const auto kernel = per_dim(a, "kernel_size", rank, {});
  const auto* strides = a["stride"].as<ForeignList>();
  return {{"ceil_mode", a.flag("ceil_mode")},
          {"kernel_size", kernel},
          {"padding", per_dim(a, "padding", rank, {Dim(0)})},
          {"stride", strides && strides->empty() ? kernel : per_dim(a, "stride", rank, kernel)}};
}

void require_pooled(ForeignArguments& a, ir::ValueId x, std::size_t rank) {
  const std::size_t n = a.type(x).rank();
  TENON_USER_CHECK(n == rank + 1 || n == rank + 2, "pooling: Expected {}D or {}D input tensor, but got {} dimensions", rank + 1, rank + 2, n);
  const std::span<const Dim> sample = std::span(a.type(x).shape).last(rank + 1);
  TENON_USER_CHECK(std::ranges::find(sample, Dim(0)) == sample.end(), "pooling: Expected input to have non-zero size for non-batch dimensions");
}

Adapt max_pool(std::size_t rank, bool always_indices) {
  return [=](ForeignArguments& a) {
    const ir::ValueId x = a.value("self");
    require_pooled(a, x, rank);
    ir::Attributes attributes = pool_attributes(a, rank);
    attributes.emplace_back("dilation", per_dim(a, "dilation", rank, {Dim(1)}));
    const bool indices = always_indices || a.flag("return_indices");
    if (indices) a.container = Container::tuple;
    return a.call(indices ? "max_pool_with_indices" : "max_pool", {x}, std::move(attributes));
  };
}

/// torch refuses a volume that is smaller than the window, whatever its padding.
void require_whole_window(ForeignArguments& a, ir::ValueId x) {
  const auto kernel = per_dim(a, "kernel_size", 3, {});
  const std::span<const Dim> volume = std::span(a.type(x).shape).last(3);
  for (std::size_t d = 0; d < 3; ++d)
    if (!infer::may_be_positive_or_0(a.graph(), volume[d] - kernel[d])) throw Exception(Code::unsupported, "a window that is larger than the volume");
}

Adapt avg_pool(std::size_t rank) {
  return [=](ForeignArguments& a) {
    const ir::ValueId x = a.value("self");
    require_pooled(a, x, rank);
    if (rank == 3) require_whole_window(a, x);
    ir::Attributes attributes = pool_attributes(a, rank);
    attributes.emplace_back("count_include_pad", a.flag("count_include_pad", true));
    if (a.given("divisor_override")) {
      TENON_USER_CHECK(a.constant("divisor_override") != 0, "divisor must be not zero");
      attributes.emplace_back("divisor_override", a.integer("divisor_override"));
    }
    return a.call("avg_pool", {x}, std::move(attributes));
  };
}

/// None in `output_size` keeps the size of that dimension.
Adapt adaptive_pool(std::size_t rank, std::string op) {
  return [=](ForeignArguments& a) {
    const ir::ValueId x = a.value("self");
    require_pooled(a, x, rank);
    const Shape shape = a.type(x).shape;
    std::vector<Dim> size;
    if (const ForeignList* list = a["output_size"].as<ForeignList>(); list && list->size() == rank) {
      for (std::size_t d = 0; d < rank; ++d) {
        const Dim* n = (*list)[d].as<Dim>();
        if (!n && !(*list)[d].is_none()) throw Exception(Code::unsupported, "an output_size that is no integer");
        size.push_back(n ? *n : shape[shape.size() - rank + d]);
      }
    } else {
      TENON_USER_CHECK(!list, "output_size must be {}", rank);
      size = per_dim(a, "output_size", rank, {});
    }
    // Parts of a size that is not known have no windows of one size, but one part is all of it.
    if (op == "avg_pool" && is_one_part(size) && !std::ranges::all_of(std::span(shape).last(rank), &Dim::is_constant))
      return a.call("mean", {x}, {{"dim", last_dims(shape.size(), rank)}, {"keepdim", true}});
    const bool indices = op == "max_pool_with_indices" || (op == "max_pool" && a.flag("return_indices"));
    if (indices) a.container = Container::tuple;
    return a.call(indices ? "max_pool_with_indices" : op, {x}, {{"output_size", size}});
  };
}

void name_pools(Op& max, Op& max_indices, Op& avg) {
  for (std::size_t n : {1u, 2u, 3u}) {
    const std::string max_signature = "(input -> self, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False)";
    const std::string avg_signature = "(input -> self, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None)";
    max.aliases = max.aliases + names({fmt::format("torch.max_pool{}d", n)}, max_signature, max_pool(n, false));
    max_indices.aliases = max_indices.aliases + names({fmt::format("torch.max_pool{}d_with_indices", n)}, max_signature, max_pool(n, true)) +
                          names({fmt::format("torch.adaptive_max_pool{}d", n), fmt::format("torch._C._nn.adaptive_max_pool{}d", n), fmt::format("torch.nn.functional.adaptive_max_pool{}d_with_indices", n)},
                                "(input -> self, output_size, return_indices=True)", adaptive_pool(n, "max_pool_with_indices"));
    max.aliases = max.aliases + names({fmt::format("torch.nn.functional.adaptive_max_pool{}d", n)}, "(input -> self, output_size, return_indices=False)", adaptive_pool(n, "max_pool"));
    avg.aliases = avg.aliases + names({fmt::format("torch.avg_pool{}d", n)}, avg_signature, avg_pool(n)) +
                  names({fmt::format("torch.adaptive_avg_pool{}d", n)}, "(input -> self, output_size)", adaptive_pool(n, "avg_pool"));
  }
}

}  // namespace

Family pooling_ops() {
  Op max = window_op("max_pool", "Tensor", max_loop);
  Op max_indices = window_op("max_pool_with_indices", "(Tensor, Tensor)", max_with_indices_loop);
  Op sum = window_op("window_sum", "Tensor", sum_loop);
  Op avg = avg_pool_op();
  sum.samples = [samples = sum.samples] {
    auto all = samples();
    for (Sample& s : all) s.tolerance = 4;
    std::erase_if(all, [](const Sample& s) { return s.name == "special"; });  // sums of huge numbers that cancel
    return all;
  };
  max.grad = max_indices.grad = written(gradients::max_pool);
  name_pools(max, max_indices, avg);
  return {std::move(max), std::move(max_indices), std::move(sum), window_size_op(), std::move(avg)};
}

}  // namespace tenon::ops
