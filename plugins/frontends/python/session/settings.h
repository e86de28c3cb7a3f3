// What `tenon.compile` was asked for.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "python/objects/ref.h"

namespace tenon::python {

struct Settings {
  std::vector<std::string> backends;  // names in order of preference; none: the configuration's
  Ref callable;                       // a backend written in Python: callable(traced graph, example inputs)
  std::string name;                   // of the backend, for messages
  bool fullgraph = false;
  std::optional<bool> dynamic;
  std::string options = "{}";         // JSON
  bool freeze = false;                // parameters and buffers are constants, under guards
  std::size_t recompile_limit = kUsualLimit;   // variants at a place
  static constexpr std::size_t kUsualLimit = 16;
  bool has_usual_limit() const { return recompile_limit == kUsualLimit; }
};

/// Reads the dict that the package makes (`tenon._compile.settings_of`). Nothing, with an exception set, when it is malformed.
std::optional<Settings> read_settings(PyObject* dict);

}  // namespace tenon::python
