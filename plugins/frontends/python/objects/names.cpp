#include "python/objects/names.h"

namespace tenon::python {

const Names& names() {
  static const Names all = {
#define TENON_INTERN(name) PyUnicode_InternFromString(#name),
      TENON_PYTHON_NAMES(TENON_INTERN)
#undef TENON_INTERN
      PyUnicode_InternFromString("__func__"),
  };
  return all;
}

}  // namespace tenon::python
