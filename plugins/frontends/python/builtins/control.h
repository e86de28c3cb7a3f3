// Control flow that stays in the graph.
#pragma once

#include <optional>

#include "python/objects/ref.h"

namespace tenon::python {

class Evaluator;
struct Arguments;

/// tenon.cond(pred, true_fn, false_fn, operands): with a tensor as condition both branches are recorded, as regions of one node.
std::optional<Ref> call_cond(Evaluator& evaluator, Arguments arguments);

/// torch.inference_mode.__enter__ and __exit__ (torch_modes.cpp).
std::optional<Ref> enter_inference_mode(Evaluator& evaluator, Arguments arguments);
std::optional<Ref> leave_inference_mode(Evaluator& evaluator, Arguments arguments);

}  // namespace tenon::python
