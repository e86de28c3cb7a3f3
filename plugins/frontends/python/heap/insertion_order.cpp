// C code that knows dicts alone goes over an OrderedDict in the order in which its keys came, whatever order the dict keeps itself.
#include "python/heap/heap.h"
#include "python/objects/dict_access.h"

namespace tenon::python {
namespace {

class InsertionOrder final : public ValueCheck {
 public:
  bool holds(PyObject* dict) const noexcept override {
    try {
      return PyDict_Check(dict) && keeps_order_of_insertion(dict);
    } catch (const PythonError&) {
      PyErr_Clear();
      return false;
    }
  }
  std::string expected() const override { return "a dict in the order in which its keys came"; }
  std::string found(PyObject* dict) const override { return holds(dict) ? expected() : "a dict whose keys were moved"; }
};

}  // namespace

void Heap::guard_insertion_order(PyObject* dict) {
  const SourceId source = source_of(dict);
  if (!source || !keeps_own_order(dict)) return;
  const Change* change = changes_.find(dict);
  if (change ? static_cast<bool>(change->inserted) : !keeps_order_of_insertion(dict)) throw GraphBreak("C code goes over an OrderedDict whose keys were moved");
  guards_.add_value_check(source, std::make_shared<InsertionOrder>());
}

}  // namespace tenon::python
