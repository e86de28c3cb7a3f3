#include "python/session/ranges.h"

#include <cstdint>
#include <vector>

#include "python/objects/gil.h"
#include "python/objects/imported.h"
#include "python/objects/pending_exception.h"
#include "python/session/session.h"

namespace tenon::python {
namespace {

enum class Taking : std::uint8_t { no, yes, unsaid };
constinit Taking g_torch_takes = Taking::unsaid;  // the GIL guards it

Taking taking(bool takes_ranges) { return takes_ranges ? Taking::yes : Taking::no; }

thread_local int t_calls = 0;
thread_local std::vector<PyObject*> t_ranges;  // torch's, of those that have begun here; null where one could not be made

/// What torch makes ranges of: the fast one where this torch has it.
Ref range_type() {
  const Ref fast = Ref::steal(imported("torch._C._profiler"));
  Ref type = fast ? Ref::steal(PyObject_GetAttrString(fast.get(), "_RecordFunctionFast")) : Ref();
  if (type) return type;
  PyErr_Clear();
  const Ref slow = Ref::steal(imported("torch.autograd.profiler"));
  return slow ? Ref::steal(PyObject_GetAttrString(slow.get(), "record_function")) : Ref();
}

void begin_torch_range(const char* name, const char*) {
  if (t_calls == 0) return;
  const GilHeld gil;
  const PendingException kept;
  const Ref type = range_type();
  Ref made = type ? Ref::steal(PyObject_CallFunction(type.get(), "N", PyUnicode_FromFormat("tenon: %s", name))) : Ref();
  const Ref entered = made ? Ref::steal(PyObject_CallMethod(made.get(), "__enter__", nullptr)) : Ref();
  if (!entered) made = {};
  PyErr_Clear();
  t_ranges.push_back(made.release());
}

void end_torch_range() {
  if (t_ranges.empty()) return;
  const GilHeld gil;
  const PendingException kept;
  const Ref range = Ref::steal(t_ranges.back());
  t_ranges.pop_back();
  if (range) Ref::steal(PyObject_CallMethod(range.get(), "__exit__", "OOO", Py_None, Py_None, Py_None));
  PyErr_Clear();
}

constexpr TenonRangeListener kTorchListener{sizeof(TenonRangeListener), begin_torch_range, end_torch_range};

}  // namespace

namespace detail {
WithinCall::WithinCall() noexcept { ++t_calls; }
WithinCall::~WithinCall() { --t_calls; }
}  // namespace detail

bool has_said_of_torch(bool takes_ranges) noexcept { return g_torch_takes == taking(takes_ranges); }

void say_of_torch(bool takes_ranges) noexcept {
  if (g_torch_takes == Taking::unsaid) logs();
  g_torch_takes = taking(takes_ranges);
  tenon_on_range(takes_ranges ? &kTorchListener : nullptr);
}

}  // namespace tenon::python
