// Gradients that are written out, by op. Each gives a value an operand.
#pragma once

#include "core/ops/build/grad_builder.h"

namespace tenon::ops::gradients {

/// `upper` divided among the elements that are `equal` to a value, or no numbers where it is none: what torch does for the one extreme or
/// median of a whole tensor.
ir::ValueId evenly(GradBuilder& g, ir::ValueId equal, ir::ValueId value, ir::ValueId upper, std::vector<ir::Dim> dims);

// reductions.cpp
GradBuilder::Values prod(GradBuilder& g);
GradBuilder::Values extreme(GradBuilder& g);             // amax, amin: equal extremes share
GradBuilder::Values extreme_with_place(GradBuilder& g);  // max_dim, min_dim
GradBuilder::Values vector_norm(GradBuilder& g);
GradBuilder::Values logsumexp(GradBuilder& g);
GradBuilder::Values var(GradBuilder& g);
GradBuilder::Values standard_deviation(GradBuilder& g);  // 0 where it is 0

// softmax.cpp
GradBuilder::Values softmax(GradBuilder& g);
GradBuilder::Values log_softmax(GradBuilder& g);

// movement.cpp
GradBuilder::Values pad(GradBuilder& g);
GradBuilder::Values reshape(GradBuilder& g);
GradBuilder::Values slice(GradBuilder& g);
GradBuilder::Values select(GradBuilder& g);
GradBuilder::Values flip(GradBuilder& g);
GradBuilder::Values cat(GradBuilder& g);
GradBuilder::Values stack(GradBuilder& g);
GradBuilder::Values unbind(GradBuilder& g);
GradBuilder::Values unfold(GradBuilder& g);
GradBuilder::Values slice_scatter(GradBuilder& g);
GradBuilder::Values select_scatter(GradBuilder& g);

// products.cpp
GradBuilder::Values matrix_product(GradBuilder& g);  // mm, bmm

// attention.cpp
GradBuilder::Values attention(GradBuilder& g);

// convolutions.cpp
GradBuilder::Values conv_sum(GradBuilder& g);
GradBuilder::Values conv_weight_sum(GradBuilder& g);
Result<std::vector<ir::Type>> types_of_conv_input_sum(const OpQuery& query);
GradBuilder::Values conv_input_sum(NodeBuilder& nodes, const OpQuery& query);  // of a weight and a gradient: what the op of that name means

// indexing.cpp
GradBuilder::Values embedding(GradBuilder& g);

// largest_of_windows.cpp
GradBuilder::Values max_pool(GradBuilder& g);  // with and without indices

// likelihoods.cpp
GradBuilder::Values binary_cross_entropy(GradBuilder& g);

// scans_and_orders.cpp
GradBuilder::Values cumsum(GradBuilder& g);
GradBuilder::Values cumprod(GradBuilder& g);
GradBuilder::Values cumprod_gradient(GradBuilder& g);
GradBuilder::Values logcumsumexp(GradBuilder& g);
GradBuilder::Values median(GradBuilder& g);
GradBuilder::Values from_places(GradBuilder& g);  // sort, topk, kthvalue, median, cummax: the second result says where the first is from
/// Values added at places along a dimension of zeros like another value.
ir::ValueId added_at(GradBuilder& g, ir::ValueId like, ir::ValueId places, ir::ValueId values, std::size_t dim);

// scatters.cpp
GradBuilder::Values scatter(GradBuilder& g);  // by its reduction; equal extremes share

}  // namespace tenon::ops::gradients
