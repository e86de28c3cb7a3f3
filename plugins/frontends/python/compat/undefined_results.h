// Meta kernels that give an empty tensor where the CPU's give none at all.
#pragma once

#include <string_view>

#include "python/objects/ref.h"

namespace tenon::python {

/// What the function gives on the CPU, from what it gave on meta tensors: None in the place of a tensor that is undefined there.
///
/// Trigger: `torch._native_multi_head_attention` with need_weights=False, which MultiheadAttention calls in evaluation. Versions: 2.15 and
/// before. Delete when its meta kernel gives an undefined tensor too.
Ref with_undefined_results(std::string_view function, Ref answer);

}  // namespace tenon::python
