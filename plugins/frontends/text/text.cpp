// Reads graphs in the text form (.tir).
#include <fstream>
#include <sstream>

#include "core/base/error.h"
#include "core/ir/parser.h"
#include "tenon/frontend.h"

namespace tenon {

class TextFrontend : public Frontend {
 public:
  ir::Graph capture_file(const std::string& path) override {
    std::ifstream stream(path);
    if (!stream) throw Failure(TENON_NOT_FOUND, "cannot read " + path);
    std::ostringstream text;
    text << stream.rdbuf();
    Result<ir::Graph> graph = ir::parse_graph(text.str());
    if (!graph) throw Failure(static_cast<TenonCode>(graph.error().code), path + ": " + graph.error().message);
    return *std::move(graph);
  }
};

}  // namespace tenon

TENON_FRONTEND(tenon::TextFrontend, "text", "0.1", "Reads graphs in the text form")
