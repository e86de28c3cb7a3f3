// The families of ops. Each function gives the entries of one file here; catalog.cpp concatenates them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/ops/build/node_builder.h"
#include "core/ops/catalog.h"
#include "core/ops/foreign/foreign_call.h"
#include "core/ops/infer.h"
#include "core/ops/reference/sample.h"

namespace tenon::ops {

using Family = std::vector<Op>;

Family arithmetic_ops();
Family comparison_ops();
Family rounding_ops();
Family transcendental_ops();
Family activation_ops();
Family loss_ops();
Family choice_ops();
Family creation_ops();
Family device_ops();
Family reduction_ops();
Family variance_ops();
Family norm_ops();
Family view_ops();
Family slicing_ops();
Family rearranging_ops();
Family joining_ops();
Family padding_ops();
Family matrix_ops();
Family indexing_ops();
Family scatter_ops();
Family normalisation_ops();
Family data_dependent_ops();
Family random_ops();
Family scan_ops();
Family opaque_ops();
Family convolution_ops();
Family channels_last_ops();
Family pooling_ops();
Family folding_ops();
Family upsampling_ops();
Family sorting_ops();
Family attention_ops();
Family control_ops();
Family complex_ops();

using Values = std::vector<ir::ValueId>;
using Adapt = std::function<Values(ForeignArguments&)>;

/// What changes nothing inside a graph: values are immutable there. Aliasing is the importer's part.
Values unchanged(ForeignArguments& a);

/// The indices of the elements that are not 0: one tensor a dimension, as a tuple.
Values nonzero_as_tuple(ForeignArguments& a, ir::ValueId x);

/// The attribute `dim` of an op, counted from the front of operand 0's dimensions.
std::size_t dim_of(const OpQuery& query);

/// `__getitem__`, `__setitem__` and the methods that overwrite all of a tensor; they belong to the op `index`.
std::vector<Alias> subscript_names();

/// Foreign functions that are made of several ops, by what they are about; they belong to an op that they end in.
std::vector<Alias> loss_names();
std::vector<Alias> product_names();
std::vector<Alias> statistics_names();
std::vector<Alias> composed_names();

/// Aliases under which torch knows a function that is also a tensor method; an empty signature is the op's schema.
std::vector<Alias> torch_names(std::string_view name, std::string signature = {}, Adapt adapt = {});
/// One alias a name, all with the same signature.
std::vector<Alias> names(std::initializer_list<std::string_view> names, std::string signature = {}, Adapt adapt = {});
/// NumPy's names of ufuncs of one or two operands.
std::vector<Alias> ufunc1(std::initializer_list<std::string_view> names, Adapt adapt = {});
std::vector<Alias> ufunc2(std::initializer_list<std::string_view> names, Adapt adapt = {});
std::vector<Alias> operator+(std::vector<Alias> a, std::vector<Alias> b);

}  // namespace tenon::ops
