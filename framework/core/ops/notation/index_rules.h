// NumPy's rules of advanced indexing, shared by reading (index) and writing (index_put).
#pragma once

#include "core/ops/build/index_math.h"
#include "core/ops/notation/family.h"

namespace tenon::ops {

/// Foreign functions that read and write at chosen places; they belong to `scatter`.
std::vector<Alias> selection_names();

/// Sums of embeddings; they belong to `embedding`.
std::vector<Alias> embedding_bag_names();

void require_index_dtype(const OpQuery& q, std::size_t operand);

/// The element of an index operand (broadcast to the trailing loops `at`, or a literal) as i64.
Scalar read_index(Scalars& s, const OpQuery& q, std::size_t operand, std::span<const Scalar> at);

/// Operand 0 indexed by tensors (operands from `first_index` on) in the dimensions of the attribute `dims`. The dimensions of the
/// broadcast index stand where the indexed ones were when those are adjacent, else in front
/// (https://numpy.org/doc/stable/user/basics.indexing.html#combining-advanced-and-basic-indexing).
struct AdvancedIndex {
  std::vector<std::size_t> dims;
  ir::Shape broadcast;  // of the index tensors
  ir::Shape result;
  std::size_t position = 0;  // where `broadcast` stands in `result`

  AdvancedIndex(const OpQuery& q, std::size_t first_index);
  /// The index into operand 0 at the point of the loops over `result`.
  std::vector<Scalar> place(Scalars& s, const OpQuery& q, std::size_t first_index) const;
};

}  // namespace tenon::ops
