// torch's autograd engine in a capture.
#pragma once

#include <optional>

#include "python/objects/ref.h"

namespace tenon::python {

class Evaluator;
struct Arguments;

/// torch.autograd.graph._engine_run_backward, where `backward()` and `grad()` of torch end: the walk becomes a part of the graph, and `.grad` of leaves
/// is written, by tenon._torch_in_python.run_backward.
std::optional<Ref> run_backward(Evaluator& evaluator, Arguments arguments);
/// tenon._torch_in_python.walk: what the recorder computes.
std::optional<Ref> walk_back(Evaluator& evaluator, Arguments arguments);
/// tenon._torch_in_python.track_function: a torch.autograd.Function that was applied.
std::optional<Ref> track_function(Evaluator& evaluator, Arguments arguments);

/// tenon._hooks.functions_may_leave and track_leaving.
std::optional<Ref> functions_may_leave(Evaluator& evaluator, Arguments arguments);
std::optional<Ref> track_leaving(Evaluator& evaluator, Arguments arguments);

/// tenon._torch_gradients.outlook_on, keep_next_run, kept_run and gradient_call.
std::optional<Ref> outlook_on(Evaluator& evaluator, Arguments arguments);
std::optional<Ref> keep_next_run(Evaluator& evaluator, Arguments arguments);
std::optional<Ref> kept_run(Evaluator& evaluator, Arguments arguments);
std::optional<Ref> gradient_call(Evaluator& evaluator, Arguments arguments);
/// torch.utils.hooks.BackwardHook._apply_on_tensors: what is before and behind a module with backward hooks.
std::optional<Ref> apply_on_tensors(Evaluator& evaluator, Arguments arguments);
/// torch.Tensor.register_hook and register_post_accumulate_grad_hook, and tenon._hooks.track_hooks.
std::optional<Ref> register_hook(Evaluator& evaluator, Arguments arguments);
std::optional<Ref> register_hook_after(Evaluator& evaluator, Arguments arguments);
std::optional<Ref> track_hooks(Evaluator& evaluator, Arguments arguments);

inline constexpr const char* kLeftToTorch = "a transform of torch.func is applied in a way that only torch follows";

/// torch._functorch.eager_transforms' `grad_impl`, `grad_and_value_impl`, `_vjp_with_argnums`, and the function that `jacrev` makes.
std::optional<Ref> transform_by_grad(Evaluator& evaluator, Arguments arguments);
std::optional<Ref> transform_by_grad_and_value(Evaluator& evaluator, Arguments arguments);
std::optional<Ref> transform_by_vjp(Evaluator& evaluator, Arguments arguments);
std::optional<Ref> transform_by_jacrev(Evaluator& evaluator, PyObject* function, Arguments arguments);
/// tenon._gradient_transforms.forget_leaves and remember_leaves.
std::optional<Ref> forget_leaves(Evaluator& evaluator, Arguments arguments);
std::optional<Ref> remember_leaves(Evaluator& evaluator, Arguments arguments);

/// torch.amp.GradScaler._maybe_opt_step.
std::optional<Ref> maybe_step(Evaluator& evaluator, Arguments arguments);
/// tenon._torch_in_python.assume.
std::optional<Ref> assume(Evaluator& evaluator, Arguments arguments);
/// torch._amp_foreach_non_finite_check_and_unscale_ and torch._amp_update_scale_.
std::optional<Ref> check_and_unscale(Evaluator& evaluator, Arguments& arguments);
std::optional<Ref> update_scale(Evaluator& evaluator, Arguments& arguments);
/// torch._fused_sgd_ and its like: the steps of an optimizer for all parameters.
std::optional<Ref> fused_sgd(Evaluator& evaluator, Arguments& arguments);
std::optional<Ref> fused_adam(Evaluator& evaluator, Arguments& arguments);
std::optional<Ref> fused_adamw(Evaluator& evaluator, Arguments& arguments);
std::optional<Ref> fused_adagrad(Evaluator& evaluator, Arguments& arguments);

}  // namespace tenon::python
