// Looks at a library's file before anything maps it: a truncated or foreign file would take the process along.
#pragma once

#include <string>

namespace tenon::host {

/// Checks that the file is a complete shared library for this machine: header, and that every segment and section lies within
/// the file (System V ABI, chapter 4: refspecs.linuxfoundation.org/elf/gabi4+). Throws Refused: empty, not_elf, wrong_class,
/// wrong_machine, wrong_type, truncated. Returns a line about what was found.
std::string check_elf(int fd);

}  // namespace tenon::host
