#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "python/guards/source.h"
#include "python/objects/imported.h"
#include "python/objects/library_types.h"

namespace tenon::python {
namespace {

constexpr std::size_t kLongest = 120;

/// As much of a text as is shown, made without the rest: a guard may be about a container of thousands of tensors.
class ShownText {
 public:
  void add(PyObject* object) {
    if (is_full()) return;
    if (PyList_CheckExact(object)) return add_items(object, "[", "]");
    if (PyTuple_CheckExact(object)) return add_items(object, "(", PyTuple_GET_SIZE(object) == 1 ? ",)" : ")");
    if (PyDict_CheckExact(object)) return add_dict(object);
    if (is_container(object)) return add_named(object);
    if (PyUnicode_CheckExact(object) && PyUnicode_GET_LENGTH(object) > static_cast<Py_ssize_t>(kLongest)) {
      Ref part = Ref::steal(PyUnicode_Substring(object, 0, kLongest));
      return add_repr(part ? part.get() : object);
    }
    if (!add_array(object)) add_repr(object);
  }

  std::string take() {
    if (text_.size() <= kLongest) return std::move(text_);
    std::size_t end = kLongest;
    while ((static_cast<unsigned char>(text_[end]) & 0xc0) == 0x80) --end;  // not inside a character
    return text_.substr(0, end) + "…";
  }

 private:
  bool is_full() const { return text_.size() > kLongest; }

  void add_items(PyObject* sequence, std::string_view open, std::string_view close) {
    text_ += open;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(sequence) && !is_full(); ++i) {
      if (i > 0) text_ += ", ";
      add(Ref::borrow(PySequence_Fast_GET_ITEM(sequence, i)).get());
    }
    text_ += close;
  }

  /// A container of another class, whose own text would hold all that is in it.
  void add_named(PyObject* object) {
    text_ += fmt::format("{}(", Py_TYPE(object)->tp_name);
    if (PyDict_Check(object)) {
      add_dict(object);
    } else if (PyList_Check(object) || PyTuple_Check(object)) {
      add_items(object, "[", "]");
    } else {
      add_some(object);
    }
    text_ += ")";
  }

  static bool is_container(PyObject* object) {
    return PyDict_Check(object) || PyList_Check(object) || PyTuple_Check(object) || PyAnySet_CheckExact(object) || Py_TYPE(object) == library_types().deque;
  }

  /// What an iterator over it gives first.
  void add_some(PyObject* object) {
    Ref iterator = Ref::steal(PyObject_GetIter(object));
    bool first = true;
    while (iterator && !is_full()) {
      const Ref item = Ref::steal(PyIter_Next(iterator.get()));
      if (!item) break;
      if (!std::exchange(first, false)) text_ += ", ";
      add(item.get());
    }
    PyErr_Clear();
  }

  void add_dict(PyObject* dict) {
    text_ += "{";
    Py_ssize_t position = 0;
    PyObject *key, *value;
    for (bool first = true; !is_full() && PyDict_Next(dict, &position, &key, &value); first = false) {
      const Ref kept_key = Ref::borrow(key), kept_value = Ref::borrow(value);
      if (!first) text_ += ", ";
      add(kept_key.get());
      text_ += ": ";
      add(kept_value.get());
    }
    text_ += "}";
  }

  /// Of tensors and arrays their kind and not their elements, which take a millisecond to print.
  bool add_array(PyObject* object) {
    if (!is_array(Py_TYPE(object))) return false;
    const Ref shape = attribute(object, "shape"), dtype = attribute(object, "dtype");
    if (!shape || !dtype || !PyTuple_Check(shape.get()) || PyTuple_GET_SIZE(shape.get()) == 0) return false;
    text_ += std::string("<") + Py_TYPE(object)->tp_name + " of ";
    add_repr(dtype.get());
    add_sizes(shape.get());
    text_ += ">";
    return true;
  }

  void add_sizes(PyObject* shape) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(shape); ++i) {
      text_ += i == 0 ? "[" : ", ";
      PyObject* size = PyTuple_GET_ITEM(shape, i);
      if (PyLong_CheckExact(size)) text_ += std::to_string(PyLong_AsLongLong(size));
      else add_repr(size);
    }
    text_ += "]";
  }

  /// By name, as neither library need be there.
  static bool is_array(PyTypeObject* type) {
    PyObject* bases = type->tp_mro;
    for (Py_ssize_t i = 0; bases != nullptr && i < PyTuple_GET_SIZE(bases); ++i) {
      const std::string_view name = reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(bases, i))->tp_name;
      if (name == "numpy.ndarray" || name == "torch._C.TensorBase") return true;
    }
    return false;
  }

  static Ref attribute(PyObject* object, const char* name) {
    Ref found = Ref::steal(interned_attribute(object, name));
    if (!found) PyErr_Clear();
    return found;
  }

  void add_repr(PyObject* object) {
    Ref text = Ref::steal(PyObject_Repr(object));
    const char* chars = text ? PyUnicode_AsUTF8(text.get()) : nullptr;
    if (chars == nullptr) PyErr_Clear();
    text_ += chars ? std::string(chars) : fmt::format("<{}>", Py_TYPE(object)->tp_name);
  }

  std::string text_;
};

}  // namespace

std::string shown(PyObject* object) {
  if (object == nullptr) return "nothing";
  ShownText text;
  text.add(object);
  return text.take();
}

}  // namespace tenon::python
