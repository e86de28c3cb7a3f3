// Files that a user names: only regular ones are read.
#pragma once

#include <cstdint>
#include <string>

namespace tenon {

/// Why nothing is to be read from a path: that there is nothing, or that it is a directory, a FIFO, a device; empty for a regular file that
/// may be read. Opens nothing, so that nothing is waited for.
std::string why_not_readable(const std::string& path);

/// The bytes of a file of any kind; 0 where there is none.
std::uint64_t size_of_file(const std::string& path);

/// The bytes of the machine's memory: what is larger is not worth an attempt.
std::uint64_t memory_of_machine();

}  // namespace tenon
