// Checks what a plugin's entry returned, before anything in it is used.
#pragma once

#include <string>
#include <string_view>

#include "core/abi/plugin.h"
#include "host/plugins/find/manifest.h"

namespace tenon::host {

/// Checks magic, sizes, version, name and the kind's table of a descriptor against what the manifest says. `refusal` is what the
/// entry wrote when it returned null. Throws Refused: null_descriptor, refused_by_plugin, bad_magic, bad_size, abi_too_new,
/// abi_too_old, name_mismatch, kind_mismatch, bad_table, sanitizer.
void check_descriptor(const TenonPlugin* descriptor, std::string_view refusal, const Manifest& manifest);

}  // namespace tenon::host
