#include "python/session/messages.h"

#include <mutex>
#include <vector>

#include "python/evaluator/evaluator.h"
#include "python/objects/imported.h"
#include "python/objects/pending_exception.h"
#include "python/session/session.h"
#include "tenon/host.h"

namespace tenon::python {
namespace {

struct Message {
  std::string area, text;
};

/// What libtenon has said and nobody has been told. Lives as long as the process: threads of libtenon may outlive the interpreter.
struct Waiting {
  std::mutex mutex;
  std::vector<Message> messages;
};
Waiting& waiting() {
  static auto* const made = new Waiting;
  return *made;
}

void keep(const char* category, const char* text) {
  const std::lock_guard lock(waiting().mutex);
  waiting().messages.push_back({category, std::string("tenon: ") + text});
  g_messages_wait.store(true, std::memory_order_relaxed);
}

}  // namespace

void tell(const char* area, const std::string& text) {
  const PendingException pending;
  const Ref module = Ref::steal(imported("tenon._messages"));
  const Ref told = module ? Ref::steal(PyObject_CallMethod(module.get(), "tell", "ss", area, text.c_str())) : Ref();
  if (told) return;
  PyErr_Clear();
  log_line(text);
}

void listen_to_libtenon() { tenon_on_message(keep); }

void deliver_messages() {
  if (current_evaluator()) return;
  std::vector<Message> messages;
  {
    const std::lock_guard lock(waiting().mutex);
    messages.swap(waiting().messages);
    g_messages_wait.store(false, std::memory_order_relaxed);
  }
  for (const Message& message : messages) tell(message.area.c_str(), message.text);
}

}  // namespace tenon::python
