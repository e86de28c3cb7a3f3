// NVIDIA's library nvJitLink: machine code from PTX, faster than the driver makes it at first, and as bytes that can be kept.
#pragma once

#include <optional>
#include <string>

namespace tenon::cuda {

/// The machine code (a cubin) for an architecture ("sm_90"). Nothing where the library is not there, or does not take the text: the driver
/// compiles it then, or says what is wrong. Thread-safe.
std::optional<std::string> to_cubin(const std::string& ptx, const std::string& architecture);

/// Under which name the library was found; empty where it was not. Opens it.
std::string linker_name();

}  // namespace tenon::cuda
