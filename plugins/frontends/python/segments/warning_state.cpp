#include "python/segments/warning_state.h"

#include <algorithm>

#include "python/objects/graph_break.h"
#include "python/objects/imported.h"

namespace tenon::python {
namespace {

constexpr const char* kAttributes[] = {"filters", "showwarning", "_showwarnmsg_impl"};

}  // namespace

WarningState::WarningState() {
  Ref module = checked(imported("warnings"));
  for (std::size_t i = 0; i < attributes_.size(); ++i) attributes_[i] = checked(interned_attribute(module.get(), kAttributes[i]));
  filters_ = checked(PySequence_Tuple(attributes_[0].get()));
}

bool WarningState::is_current() const {
  const WarningState now;
  const auto same = [](const Ref& a, const Ref& b) { return a.is(b.get()); };
  if (!std::ranges::equal(attributes_, now.attributes_, same) || PyTuple_GET_SIZE(filters_.get()) != PyTuple_GET_SIZE(now.filters_.get())) return false;
  for (Py_ssize_t at = 0; at < PyTuple_GET_SIZE(filters_.get()); ++at)
    if (PyTuple_GET_ITEM(filters_.get(), at) != PyTuple_GET_ITEM(now.filters_.get(), at)) return false;
  return true;
}

void WarningState::restore_filters() const {
  if (is_current()) return;
  checked(PyObject_CallMethod(checked(imported("_warnings")).get(), "_filters_mutated", nullptr));
  if (PyList_SetSlice(attributes_[0].get(), 0, PyList_GET_SIZE(attributes_[0].get()), filters_.get()) < 0) throw_python_error();
}

}  // namespace tenon::python
