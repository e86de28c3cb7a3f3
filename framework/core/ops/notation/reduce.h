// What reductions share: their shapes, their loop nests, and the foreign ways to name the reduced dimensions.
#pragma once

#include "core/ops/build/index_math.h"
#include "core/ops/notation/family.h"

namespace tenon::ops {

/// The dimensions, extents and indices of a reduction of operand 0 over the attributes `dim` and `keepdim`.
struct ReductionShape {
  std::vector<std::size_t> reduced;  // dimensions of the operand, sorted
  ir::Shape result;
  ir::Shape extents;  // of the loops: the result's, then the reduced ones
  ir::Dim count;      // elements of one reduction

  explicit ReductionShape(const OpQuery& q);
  /// The index into the operand at the point of the loops.
  std::vector<Scalar> operand_index(Scalars& s, const OpQuery& q) const;
  Scalar load(Scalars& s, const OpQuery& q) const { return s.load(0, q.type(0).dtype, operand_index(s, q)); }
};

/// Of a variance over the attributes `dim` and `correction`: elements of one result less the correction, at least 0.
ir::Literal degrees_of_freedom(const OpQuery& q);

/// A reducer of one accumulator: `identity`, a combining primitive, and what is done at the end.
Reducer simple_reducer(DType dtype, double identity, Primitive combine, const std::function<Scalar(Scalars&, Scalar)>& finish = {});

/// The largest or smallest value of a dtype: infinities for floats.
Scalar extreme_value(Scalars& s, DType t, bool largest);

/// Of several nan, which one's place counts.
enum class NanPlace : std::uint8_t { first, last };

/// The narrowest dtype in which a reduction over `count` elements may keep a place: what lanes hold more of.
DType place_type(const ir::Dim& count);

/// Keeps the larger (smaller) of two (value, index), of equal ones that with the lower index; nan beats all. The index is of the dtype
/// `place`. Gives the value, where wanted, and the index as int64.
Reducer place_reducer(DType t, DType place, bool largest, NanPlace nan, bool with_value);

/// Every set of reduced dimensions that matters, with and without keepdim: cases for the op's samples.
std::vector<Sample> reduction_samples(std::vector<DType> dtypes, Fill fill = Fill::normal, ir::Attributes attributes = {},
                                      bool zero_size = true);

/// The attributes with a dtype added.
ir::Attributes with_dtype(ir::Attributes attributes, DType dtype);

/// Whether an argument is a list without items.
bool is_empty_list(const ForeignArgument& argument);
/// {"dim", ...} and {"keepdim", ...} from the bound arguments `dim` and `keepdim`.
ir::Attributes reduction_attributes(ForeignArguments& a, ir::ValueId x);
/// How many elements make one result of a reduction over the bound argument `dim`.
ir::Dim elements_of_result(ForeignArguments& a, ir::ValueId x);

/// Foreign names of a reduction: torch function and method (with `extra` parameters), NumPy function and method.
std::vector<Alias> reduction_names(std::string_view torch, std::string_view numpy, Adapt adapt, std::string_view torch_extra = "",
                                   std::string_view numpy_extra = "");

}  // namespace tenon::ops
