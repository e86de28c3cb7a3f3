// Reads and writes NumPy's .npy files (numpy.org/doc/stable/reference/generated/numpy.lib.format.html).
#pragma once

#include <string>
#include <string_view>

#include "array.h"

namespace tenon::cli {

/// Reads versions 1 to 3, little-endian, C and Fortran order. bfloat16 is not part of the format. Throws Exception: malformed for a
/// damaged file, unsupported for big-endian, structured, string and object arrays; the message does not name the file.
Array parse_npy(std::string_view bytes);
/// The file's bytes (version 1, C order). bfloat16 is written as float32, which holds the same values.
std::string npy_bytes(const Array& array);

/// The same with files; messages begin with the path. Throws Exception (not_found) for a file that cannot be read or written.
Array read_npy(const std::string& path);
void write_npy(const std::string& path, const Array& array);

}  // namespace tenon::cli
