// Tensors that plugins hand over: what can be wrong with one, and who gives it back.
#pragma once

#include <memory>
#include <string>

#include "core/abi/plugin.h"

namespace tenon::host {

/// What is wrong with a tensor that a plugin hands over, whatever it is for: "has 70000 dimensions", "is null"; empty when nothing is.
/// Its memory cannot be checked. It must be the host's unless `on_any_device`.
std::string defect_of(const DLManagedTensorVersioned* tensor, bool on_any_device = false);

/// Gives a tensor back to its maker. `watched`: see call_plugin.
void give_back(DLManagedTensorVersioned* tensor, const TenonHost* watched);

/// Holds a tensor, and gives it back at the end.
std::shared_ptr<const void> owner_of(DLManagedTensorVersioned* tensor, const TenonHost* watched);

/// What is wrong with a graph that a plugin hands over as lists: a buffer, numbers of constants (null for none), tensors. Empty when all
/// may be looked at.
std::string defect_of_given(TenonBytes buffer, const std::uint32_t* constants, std::size_t constant_count, DLManagedTensorVersioned* const* tensors,
                            std::size_t tensor_count);

}  // namespace tenon::host
