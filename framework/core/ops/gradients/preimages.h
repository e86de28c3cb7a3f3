// Where the elements of a tensor were loaded: the other way round than a load says it. What a load is handed then comes to each element as a
// sum over the points that loaded it, in any order of elements, and not as a scatter.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/ops/build/node_builder.h"

namespace tenon::ops {

/// A linear map along one dimension, by its result: element i is the sum over j of weight times what lies at a place.
struct GatheredSum {
  std::int64_t size = 0, terms = 0;               // elements, and the most terms that one has
  std::vector<std::vector<std::int64_t>> places;  // one for each dimension that is read, its index by [term, element]; 0 where there is no term
  std::vector<std::uint8_t> present;              // whether there is a term, by [term, element]
  std::vector<double> weights;                    // by [term, element]; empty: 1

  /// Appends a term to an element. Terms keep the order in which they come.
  struct Term {
    std::int64_t element;
    std::vector<std::int64_t> place;
    double weight = 1;
  };
  GatheredSum(std::int64_t size, std::size_t dimensions, std::span<const Term> terms);
};

/// Which of `out` results read each of `in` elements. The program says of the result at loop index 0 the indices that it reads, so many taps, and
/// then the weight of each, or none where all are 1.
GatheredSum readers(ScalarProgram program, std::size_t taps, std::int64_t in, std::int64_t out);

/// The sum, of the dimensions from `first` on of a tensor, of which one is left.
ir::ValueId gathered_sum(NodeBuilder& builder, ir::ValueId from, std::size_t first, const GatheredSum& sum);

/// One dimension of what a load reads.
struct LoadedDimension {
  std::vector<std::size_t> loops;  // that its index is a function of
  std::optional<GatheredSum> sum;  // of the points of these loops; none: the loop is the index of all elements
};

/// The dimensions of what a load reads, where the index of each is a function of loops of its own, of known extents, its mask says no more than one
/// thing of each, and few elements are loaded so often that the sums would have many absent terms. Throws nothing.
std::optional<std::vector<LoadedDimension>> loaded_dimensions(const ScalarProgram& program, const Instruction& load, const ir::Shape& extents, const ir::Shape& shape);

}  // namespace tenon::ops
