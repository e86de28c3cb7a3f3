// What must be known of functions of torch and NumPy by their names: one table. What the catalogue's aliases and ATen's schemas say is not in it.
#pragma once

#include <bitset>
#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "core/ops/foreign/foreign_call.h"

namespace tenon::python {

/// A property of a function that follows from its name alone.
enum class Trait : std::uint8_t {
  // how a call is treated (CallClass)
  metadata,       // reads shapes, dtypes and the like
  data,           // reads elements: the result is no tensor, and depends on the data
  creation,       // makes a tensor from Python values
  evaluated,      // a method written in Python that is evaluated like any function
  same_elements,  // gives the elements of self as they are; whether in new memory, the library says

  // what metadata it reads
  same_for_all_sizes,  // which does not depend on sizes, as long as an input's strides are of one class
  asks_for_layout,     // what strides say; those of one row or of one column may be of both orders

  // how it reads elements
  answers_of_known,  // an answer about elements that are known is Python's own
  gives_number,      // the number in a tensor of one element

  // what it writes
  writes,           // into its first argument, where ATen has no schema that says so
  writes_elements,  // and does nothing else
  undeclared,       // more than its schema says: running statistics, memory beside its argument, a file, more than elements

  retains_gradient,  // its argument, which is computed, is to keep its gradient
  detaches_in_place, // makes its argument a leaf
  keeps_no_operand,  // torch keeps no tensor of floats that it is given for the gradient, which may be written since then
  asks_for_gradient, // whether its argument is to require a gradient

  // what memory it gives
  subscripts,        // reads or writes what an index names
  chosen_by_index,   // the library decides by the index whether it gives a view or a copy, and in which order that lies
  crosses,           // takes a tensor or array of the other library as if it were its own
  copies,            // gives new memory, whatever it is given
  shares_arrays,     // takes arrays alone, and gives their memory
  dtype_by_position, // takes dtype and device behind its argument, not by keyword alone
  moves,             // gives its argument on the device, and in the dtype, that others name, by words too
  detaches,          // gives a view that is no part of the autograd graph
  counts_apart,      // gives a view with a version of its own
  hides_base,        // may give a view of what it has made itself
  flattens_rows,     // computes a matrix of all rows, of which it gives a view
  keeps_order,       // gives a copy in NumPy's order "K"
  gives_arguments,   // gives its arguments as they are, or views of them, as it comes
  asks_for_sharing,  // whether arrays may share memory
  gives_several_views, // of one tensor, through which torch refuses writes that need gradients
  takes_apart_by_dimension,  // gives a view for each place along a dimension
  takes_apart_by_size,       // gives views of so many places each
  takes_apart_by_count,      // gives so many views, or those between places
  splits,            // tenon._splits has a function of its name that does the same by expressions of sizes

  // what lies where
  other_strides,    // its meta function gives other strides than the CPU's
  row_major_draws,  // draws into a row-major tensor
  by_places,        // counts elements as they lie in memory
  trusts_pivots,    // does not look at the rows that its pivots name: zeros, which name none, have it write beside its memory

  // what it gives
  gives_arrays,     // of NumPy: a 0-d array, not a scalar, where the shape is ()
  product,          // a ufunc that is not computed element by element
  finds_places,     // where elements are not 0, if it is given nothing else
  finds_distinct,   // each element once
  finds_elements,   // a vector whose size depends on data, and nothing else
  bins_by_name,     // a size that depends on data, where a rule for it is named
  draws_between,    // its first one or two ints, the upper one excluded
  gives_by_rank,    // sizes by the rank of a matrix, which neither zeros nor ones have in full

  // what NumPy computes
  computes,          // from metadata and elements alone, with sizes and dtypes of results that depend on no element
  computes_complex,  // likewise, of complex numbers: the catalogue has it for real ones
  strong_operands,   // a method of arrays; numbers among its arguments have a say about dtypes, where those of others have none
  weak_operands,     // a function; numbers among its arguments have no say about dtypes
  weak_behind_first, // likewise, but for the first
  rounds_numbers,    // to the dtype of tensors of half precision, beside which they stand
  numbers_in_float32,  // computes with float32 where tensors are of half precision, and with a number as one (ATen's opmath_type)

  // what depends on the program's state
  random_in_training,  // takes random numbers where its dropout is not 0 and it trains
  random_by_dropout,   // takes random numbers where its dropout is not 0
  has_gradient_in_python,  // as its op, if it has one, has not: package/tenon/_differentiable.py has the function
  draws_by_kernels,    // package/tenon/_philox.py may have the function for a device, with kernels of ours that draw as torch's do there
  counts_draws,        // takes what such kernels draw from torch's generator
  draws_of_no_slope,   // takes random numbers; what it gives has a gradient of zeros by its operands (torch's derivatives.yaml)
  takes_probability,   // as a number behind its tensor, which then only says how many are drawn
  drops_in_training,   // gives its argument outside training, whatever its schema says
  minds_determinism,   // torch refuses it on the CPU, or fills what it makes, where deterministic algorithms are asked for
  minds_layout,        // torch copies an argument that is not contiguous, with a warning

  // what it warns of
  warns_itself,             // of errors in floats, not by the flags that it leaves
  warns_of_placed_output,   // of an output by position
  warns_of_swapped_arguments,  // which its op refuses
  count
};

/// The traits of one function.
class FunctionTraits {
 public:
  bool has(Trait trait) const { return bits_[static_cast<std::size_t>(trait)]; }
  void add(Trait trait) { bits_.set(static_cast<std::size_t>(trait)); }

 private:
  std::bitset<static_cast<std::size_t>(Trait::count)> bits_;
};

/// What the table says of a function: "torch.Tensor.add_", "numpy.put", "numpy.add.reduce", "aten.add.Tensor".
FunctionTraits traits_of(std::string_view name, ops::Flavour flavour);

}  // namespace tenon::python
