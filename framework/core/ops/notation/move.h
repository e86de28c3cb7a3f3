// What ops that only move elements share: a loop nest whose element is one load at a computed index.
#pragma once

#include "core/ops/build/index_math.h"
#include "core/ops/notation/family.h"

namespace tenon::ops {

/// Gives the index into operand 0 for the index `at` into the result.
using IndexMap = std::function<std::vector<Scalar>(Scalars&, const OpQuery&, std::span<const Scalar> at)>;
using ShapeRule = std::function<ir::Shape(const OpQuery&)>;

/// An op of one tensor that gives the elements at mapped indices, in the shape that `shape` gives.
Op movement(std::string name, std::string schema, ShapeRule shape, IndexMap map, std::vector<Alias> aliases);

/// The attribute `dim` of an op on operand 0, wrapped; a 0-d tensor has none.
std::size_t real_dim(const OpQuery& q);

/// The index into a tensor of shape `from` of the element that stands at `at` in shape `to`, both row-major. Dimensions that
/// match or split keep simple indices; only what is regrouped is linearised.
std::vector<Scalar> reshaped_index(Scalars& s, std::span<const ir::Dim> from, std::span<const ir::Dim> to, std::span<const Scalar> at);

/// A shape with at most one -1, completed for `count` elements.
ir::Shape completed_shape(const ir::Graph& graph, std::span<const ir::Dim> count_of, std::vector<ir::Dim> shape);

/// Nodes for a foreign call, left out where they would change nothing.
ir::ValueId reshape_to(NodeBuilder& b, ir::ValueId x, ir::Shape shape);
/// A tensor without dimensions as a vector of one element.
ir::ValueId as_vector(NodeBuilder& b, ir::ValueId x);
ir::ValueId permute_by(NodeBuilder& b, ir::ValueId x, std::vector<std::int64_t> order);
/// The order of dimensions in which the last two, of at least two, are exchanged.
std::vector<std::int64_t> transposing_order(std::size_t rank);
/// Every matrix of a tensor transposed.
ir::ValueId transpose_of(NodeBuilder& b, ir::ValueId x);
ir::ValueId expand_to(NodeBuilder& b, ir::ValueId x, ir::Shape shape);
/// x[start:end:step] along a dimension with Python's rules: negative bounds count from the end, bounds are clamped, a negative step
/// goes backwards.
ir::ValueId slice_of(NodeBuilder& b, ir::ValueId x, std::size_t dim, const ForeignSlice& slice);
/// The element at an index (from the end where negative), without that dimension.
ir::ValueId select_of(NodeBuilder& b, ir::ValueId x, std::size_t dim, const ir::Dim& index);

/// The bounds of a forward slice, clamped to [0, size]; `end` >= `start`. `backward`: the slice is read from its end.
struct SliceBounds {
  ir::Dim start, end, step = ir::Dim(1);
  bool backward = false;
};
SliceBounds slice_bounds(const ir::Graph& graph, const ir::Dim& size, const ForeignSlice& slice);
/// How many elements it shows.
ir::Dim slice_extent(const SliceBounds& bounds);

/// Samples of one operand in every dtype class, contiguous and strided, with these attributes.
std::vector<Sample> movement_samples(std::vector<std::int64_t> shape, std::vector<ir::Attributes> sets);

/// The numbers of the last so many of a tensor's dimensions, as an attribute has them.
std::vector<ir::Dim> last_dims(std::size_t rank, std::size_t count);

}  // namespace tenon::ops
