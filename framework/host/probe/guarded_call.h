// A call into the plugin that says where it is, and lets no exception out unnoticed.
#pragma once

#include <string>

#include "answer.h"
#include "host/plugins/find/refusal.h"

namespace tenon::probe {

/// An exception that leaves the C function is the plugin's defect, whatever it says. Throws host::Refused (threw).
template <class Call>
auto guarded(const std::string& step, const Call& call) {
  enter_step(step.c_str());
  try {
    return call();
  } catch (const std::exception& thrown) {
    throw host::Refused("threw", "let an exception out of the step \"{}\": {}", step, thrown.what());
  } catch (...) {
    throw host::Refused("threw", "let something that is no std::exception out of the step \"{}\"", step);
  }
}

}  // namespace tenon::probe
