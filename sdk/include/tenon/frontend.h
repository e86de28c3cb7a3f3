// A frontend in C++: reads files into graphs. A plugin is one class and one line: TENON_FRONTEND(MyFrontend, "my_frontend", "1.0").
// Needs core: tenon_add_plugin(... CORE). The file suffixes stand in tenon_add_plugin(... SUFFIXES .abc).
#pragma once

#ifndef TENON_PLUGIN_CORE
#error "tenon/frontend.h needs Tenon's core: add CORE to tenon_add_plugin"
#endif

#include <string>

#include "core/ir/graph.h"
#include "tenon/host_services.h"

namespace tenon {

/// A frontend. One object a file; a class may have a constructor that takes (HostServices, std::string options).
class Frontend {
 public:
  virtual ~Frontend() = default;
  /// Reads a file into a graph. Throw, with file and line in the text, when it cannot be read.
  virtual ir::Graph capture_file(const std::string& path) = 0;
};

}  // namespace tenon

#include "tenon/frontend_entry.h"
