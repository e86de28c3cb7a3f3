#include "python/recording/graph/varying_input.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <numeric>

#include "python/metadata/strides.h"

namespace tenon::python {
namespace {

constexpr std::size_t kMostDimensions = 32;  // bits of TensorSpec's masks

/// For each dimension the extents whose product its stride is, as bits; 0 where it is no such product.
std::vector<std::uint32_t> products_of(const TensorSpec& spec) {
  std::vector<std::size_t> inner_first(spec.shape.size());
  std::iota(inner_first.begin(), inner_first.end(), 0);
  // Row-major order decides between equal strides, which only sizes of 1 have.
  std::stable_sort(inner_first.begin(), inner_first.end(), [&](std::size_t a, std::size_t b) {
    return spec.strides[a] != spec.strides[b] ? spec.strides[a] < spec.strides[b] : a > b;
  });
  std::vector<std::uint32_t> products(spec.shape.size(), 0);
  std::uint32_t inner = 0;
  std::int64_t product = 1;
  for (std::size_t d : inner_first) {
    if (spec.strides[d] != product) continue;
    products[d] = inner;
    inner |= 1u << d;
    product *= spec.shape[d];
  }
  return products;
}

/// The dimensions that are not known to be of size 1.
std::vector<std::size_t> several(const ir::Shape& shape) {
  std::vector<std::size_t> dims;
  for (std::size_t d = 0; d < shape.size(); ++d)
    if (!(shape[d] == ir::Dim(1))) dims.push_back(d);
  return dims;
}

std::vector<std::size_t> outermost_first(std::vector<std::size_t> dims, std::span<const std::int64_t> strides) {
  std::ranges::stable_sort(dims, std::greater(), [&](std::size_t d) { return strides[d]; });
  return dims;
}

ir::Shape extents_of(TensorSpec& spec, const std::string& name, SourceId source, Symbols& symbols, bool from_the_start, const SizeMarks& marks) {
  ir::Shape shape;
  for (std::uint32_t d = 0; d < spec.shape.size(); ++d) {
    const std::string words = name + ".shape[" + std::to_string(d) + "]";
    if (marks.varying >> d & 1) symbols.expect_to_vary(words, spec.shape[d]);
    if (marks.constant >> d & 1) shape.emplace_back(spec.shape[d]);
    else shape.push_back(symbols.number({NumberSource::Kind::extent, source, d, words}, spec.shape[d], from_the_start));
    if (!shape.back().is_constant()) spec.free_extents |= 1u << d;
  }
  return shape;
}

/// The dimensions in a set of ints that torch keeps as an attribute of a tensor.
std::uint32_t dimensions_in(PyObject* tensor, const char* attribute) {
  const Ref name = Ref::steal(PyUnicode_InternFromString(attribute));
  const Ref marked = name ? Ref::steal(PyObject_GenericGetAttr(tensor, name.get())) : Ref();
  const Ref iterator = marked ? Ref::steal(PyObject_GetIter(marked.get())) : Ref();
  std::uint32_t dimensions = 0;
  for (std::size_t taken = 0; iterator && taken < kMostDimensions; ++taken) {
    const Ref dimension = Ref::steal(PyIter_Next(iterator.get()));
    const long value = dimension ? PyLong_AsLong(dimension.get()) : -1;
    if (!dimension || value < 0 || value >= static_cast<long>(kMostDimensions)) break;
    dimensions |= 1u << value;
  }
  PyErr_Clear();
  return dimensions;
}

}  // namespace

SizeMarks size_marks(PyObject* tensor) {
  SizeMarks marks;
  marks.varying = dimensions_in(tensor, "_dynamo_dynamic_indices") | dimensions_in(tensor, "_dynamo_weak_dynamic_indices");
  marks.constant = dimensions_in(tensor, "_dynamo_static_indices") & ~marks.varying;
  return marks;
}

ir::Type type_of_input(TensorSpec& spec, const std::string& name, SourceId source, Symbols& symbols, bool from_the_start, const SizeMarks& marks) {
  ir::Type type = ir::Type::tensor(spec.dtype, ir::Shape(spec.shape.begin(), spec.shape.end()), spec.device);
  const bool row_major = is_row_major(spec.shape, spec.strides);
  if (!row_major) type.strides = ir::Shape(spec.strides.begin(), spec.strides.end());
  if (spec.is_parameter()) return type;  // another module's: a variant of its own
  if (!symbols.dynamic() || spec.kind == TensorKind::scalar || spec.shape.size() > kMostDimensions) return type;
  type.shape = extents_of(spec, name, source, symbols, from_the_start, marks);
  const bool any_layout = symbols.layout_varies(name, row_major);
  const bool with_strides = any_layout || !row_major;
  const std::vector<std::uint32_t> products = products_of(spec);
  ir::Shape strides;
  for (std::uint32_t d = 0; d < spec.shape.size(); ++d) {
    if (!any_layout && (products[d] & spec.free_extents)) {
      ir::Dim product = 1;
      for (std::size_t i = 0; i < spec.shape.size(); ++i)
        if (products[d] >> i & 1) product = product * type.shape[i];
      strides.push_back(product);
      spec.stride_products.resize(spec.shape.size());
      spec.stride_products[d] = products[d];
      continue;
    }
    if (!with_strides && spec.shape[d] > 1) {  // a layout of its own: the graph has no strides for it
      strides.emplace_back(spec.strides[d]);
      continue;
    }
    const std::string words = name + ".stride(" + std::to_string(d) + ")";
    // A part of something of another size, next time.
    if (with_strides && (any_layout || spec.free_extents)) symbols.expect_to_vary(words, spec.strides[d]);
    strides.push_back(symbols.number({NumberSource::Kind::stride, source, d, words}, spec.strides[d], false));
    if (!strides.back().is_constant()) spec.free_strides |= 1u << d;
  }
  if (spec.varies()) spec.stride_products.resize(spec.shape.size());
  if (with_strides) {
    if (spec.varies()) settle_order(symbols, type.shape, strides, spec.strides);
    type.strides = std::move(strides);
  }
  return type;
}

void settle_order(Symbols& symbols, const ir::Shape& shape, const ir::Shape& strides, std::span<const std::int64_t> known) {
  using Operator = ir::Relation::Operator;
  const std::vector<std::size_t> dims = outermost_first(several(shape), known);
  for (std::size_t at = 1; at < dims.size(); ++at)
    if (const ir::Dim step = strides[dims[at - 1]] - strides[dims[at]]; !step.is_constant()) symbols.decide(Operator::less_equal, 0, step);
  if (!dims.empty() && !strides[dims.back()].is_constant()) symbols.decide(Operator::equal, strides[dims.back()], 1);
}

void settle_gaps(Symbols& symbols, const ir::Shape& shape, const ir::Shape& strides, std::span<const std::int64_t> known) {
  const auto settle = [&](const std::vector<std::size_t>& dims) {
    for (std::size_t at = 1; at < dims.size(); ++at) {
      const ir::Dim& outer = strides[dims[at - 1]];
      const ir::Dim over = strides[dims[at]] * shape[dims[at]];
      if (!(outer - over).is_constant()) symbols.decide(ir::Relation::Operator::equal, outer, over);
    }
  };
  const std::vector<std::size_t> dims = several(shape);
  settle(dims);
  settle(outermost_first(dims, known));
}

std::vector<Extents> ways_to_lie(const ir::Shape& shape, const ir::Shape& strides, std::span<const std::int64_t> sizes, std::span<const std::int64_t> known) {
  constexpr std::size_t kMost = 8;
  const std::vector<std::size_t> dims = several(shape);
  if (outermost_first(dims, known) != dims) return {};
  std::vector<Extents> ways = {Extents(known.begin(), known.end())};
  for (std::size_t at = dims.size(); at-- > 1;) {
    const std::size_t outer = dims[at - 1], inner = dims[at];
    const std::int64_t gap = known[outer] - known[inner] * sizes[inner];
    const bool varies = !(strides[outer] - strides[inner] * shape[inner]).is_constant();
    if (gap < 0 || (varies && 2 * ways.size() > kMost)) return {};
    std::vector<Extents> with_gap = varies ? ways : std::vector<Extents>();
    for (Extents& way : ways) way[outer] = way[inner] * sizes[inner] + (varies ? 0 : gap);
    for (Extents& way : with_gap) way[outer] = way[inner] * (sizes[inner] + 1);
    ways.insert(ways.end(), std::make_move_iterator(with_gap.begin()), std::make_move_iterator(with_gap.end()));
  }
  for (std::size_t next = shape.size(); next-- > 1;)  // a dimension of size 1 goes on lying as if it were another one around the next
    if (shape[next - 1] == ir::Dim(1) && known[next - 1] == known[next] * sizes[next])
      for (Extents& way : ways) way[next - 1] = way[next] * sizes[next];
  return ways;
}

}  // namespace tenon::python
