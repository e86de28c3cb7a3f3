// The thread-local state behind plugin_call.h, which a parallel loop carries to its workers.
#pragma once

#include <algorithm>
#include <mutex>
#include <optional>
#include <vector>

#include "host/plugins/contact/plugin_call.h"

namespace tenon::host {

class CancelScope;
class Progress;

/// What a compile lets its plugin ask for. Workers of one compile may ask at the same time.
struct CompileScope::State {
  TenonGraph graph{};
  std::mutex mutex;
  std::vector<std::uint32_t> constants_read;
  State* outer = nullptr;
};

struct ReportSlot {
  std::mutex mutex;
  std::optional<Report> report;
};

struct CallState {
  CompileScope::State* compile = nullptr;
  ReportSlot* reports = nullptr;  // null: the thread's own
  CancelScope* cancel = nullptr;
  Progress* progress = nullptr;  // of the compile that runs

  static CallState& current();
  ReportSlot& slot();
};

}  // namespace tenon::host
