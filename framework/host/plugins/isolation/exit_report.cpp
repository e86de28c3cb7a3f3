#include "host/plugins/isolation/exit_report.h"

#include <fmt/format.h>
#include <stdlib.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>

#include "host/plugins/contact/host_table.h"
#include "host/plugins/contact/plugin_call.h"

namespace tenon::host {
namespace {

void tell(const char* how) {
  static std::atomic<bool> told{false};
  const CallWatch* running = CallWatch::innermost();
  if (!running || told.exchange(true)) return;
  const std::string text = fmt::format("[tenon error] plugins: plugin '{}' ended the process in \"{}\": it called {}\n", plugin_of(*running->watched()), running->function(), how);
  if (::write(STDERR_FILENO, text.data(), text.size()) < 0) return;
}

void at_exit(int status, void*) {
  if (!CallWatch::innermost()) return;
  tell(fmt::format("exit({})", status).c_str());
  if (status != 0) return;
  std::fflush(nullptr);
  ::_exit(kEndedByPlugin);
}

void at_quick_exit() {
  if (!CallWatch::innermost()) return;
  tell("quick_exit");
  ::_exit(kEndedByPlugin);
}

}  // namespace

void report_exits() {
  static const bool quick = (::at_quick_exit(at_quick_exit), true);
  static_cast<void>(quick);
  ::on_exit(at_exit, nullptr);
}

}  // namespace tenon::host
