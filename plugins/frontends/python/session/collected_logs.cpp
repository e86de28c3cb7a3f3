#include "python/session/collected_logs.h"

#include <fmt/format.h>

#include <mutex>
#include <vector>

#include "python/session/errors.h"
#include "python/session/session.h"
#include "tenon/host.h"

namespace tenon::python {
namespace {

struct Line {
  std::string log, plugin, text;
};

/// Lives as long as the process: threads of libtenon may outlive the interpreter.
struct Collected {
  std::mutex mutex;
  std::vector<Line> lines;
};

Collected& collected() {
  static auto* const made = new Collected;
  return *made;
}

void keep(void*, const char* log, const char* plugin, const char* text) {
  const std::lock_guard lock(collected().mutex);
  collected().lines.push_back({log, plugin, text});
}

}  // namespace

bool begin_collecting(const std::string& names) {
  TenonSession* s = session();
  if (!s) return false;
  if (tenon_session_on_log(s, names.c_str(), keep, nullptr) == TENON_OK) return true;
  set_host_error();
  return false;
}

Ref end_collecting() {
  TenonSession* s = session();
  if (!s) return {};
  tenon_session_on_log(s, nullptr, nullptr, nullptr);
  std::vector<Line> lines;
  {
    const std::lock_guard lock(collected().mutex);
    lines.swap(collected().lines);
  }
  Ref list = Ref::steal(PyList_New(0));
  for (const Line& line : lines) {
    const auto size = static_cast<Py_ssize_t>(line.text.size());
    const Ref text = Ref::steal(PyUnicode_DecodeUTF8(line.text.data(), size, "replace"));
    const Ref entry = text ? Ref::steal(Py_BuildValue("(ssO)", line.log.c_str(), line.plugin.c_str(), text.get())) : Ref();
    if (!list || !entry || PyList_Append(list.get(), entry.get()) < 0) return {};
  }
  return list;
}

void say_in_steps(const char* what, long number) {
  TenonSession* s = session();
  if (s && tenon_session_log_enabled(s, "steps")) tenon_session_log(s, TENON_INFO, "steps", fmt::format("{{\"{}\":{}}}", what, number).c_str());
}

}  // namespace tenon::python
