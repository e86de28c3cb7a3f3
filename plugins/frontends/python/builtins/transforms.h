// Transforms of torch.func that are no gradients, and the modes of torch that change what its functions mean.
#pragma once

#include "python/evaluator/evaluator.h"

namespace tenon::python {

inline constexpr const char* kTransformApplied = "a function transform of torch (vmap, jvp) is applied";
inline constexpr const char* kTransformHint = "write the batch dimension out, which matmul and einsum take; where it stays, the transform runs by torch";

/// torch._functorch.vmap.vmap_impl.
std::optional<Ref> vmap(Evaluator& evaluator, Arguments arguments);
/// tenon._batching.by_example.
std::optional<Ref> by_example(Evaluator& evaluator, Arguments arguments);
/// TorchFunctionMode.__enter__ and __exit__: of the one that is known, which makes indices of tensors without dimensions.
std::optional<Ref> enter_function_mode(Evaluator& evaluator, Arguments arguments);
std::optional<Ref> leave_function_mode(Evaluator& evaluator, Arguments arguments);

}  // namespace tenon::python
