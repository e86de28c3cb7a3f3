#include "captured.h"

#include "core/ir/buffer.h"

namespace tenon::cli {

ir::Graph Captured::graph() const {
  const TenonGraph& buffer = this->buffer();
  return ir::read_buffer(buffer.buffer, {buffer.constants, buffer.constant_count}).value();
}

Captured capture(const Session& session, const std::string& path) {
  check_file(path);
  TenonCapturedGraph* graph = nullptr;
  const std::int32_t code = tenon_capture_file(session.get(), path.c_str(), "{}", &graph);
  if (code == TENON_NOT_FOUND) throw CommandError(kBadUsage, last_error_text());
  check(code);
  return Captured(graph);
}

}  // namespace tenon::cli
