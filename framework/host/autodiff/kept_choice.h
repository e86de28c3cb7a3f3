// Keeping values or computing them again: the choice that costs least.
#pragma once

#include <vector>

#include "core/rewrite/kept_values.h"

namespace tenon::host {

/// By value, whether it is kept.
std::vector<bool> choose_kept(const rewrite::KeepNetwork& network);

}  // namespace tenon::host
