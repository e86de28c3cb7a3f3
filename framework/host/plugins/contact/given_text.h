// Text that plugins hand over.
#pragma once

#include <string>

namespace tenon::host {

/// A copy as UTF-8, with a replacement character for what is none; empty for null.
std::string text_of(const char* given);

}  // namespace tenon::host
