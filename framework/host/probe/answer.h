// What the probe tells the host, and how it tells of its own death.
#pragma once

#include <string>
#include <vector>

namespace tenon::probe {

/// Must be called first: every line begins with the token.
void begin_answer(const char* token);

/// Says that a step begins; a death from now on is placed there.
void enter_step(const char* step);

/// Say the verdict and end the process.
[[noreturn]] void refuse(const std::string& reason, const std::string& text);
[[noreturn]] void accept(const char* kind, const std::vector<std::string>& passes);

/// From now on an exception that nobody catches, a stack overflow and a wild pointer are told before the process dies of them.
void report_deaths();

}  // namespace tenon::probe
