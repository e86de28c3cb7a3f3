#include "python/objects/library_types.h"

#include "python/objects/graph_break.h"
#include "python/objects/imported.h"

namespace tenon::python {
namespace {

PyTypeObject* imported_type(const char* module, const char* name) {
  Ref from = checked(imported(module));
  // Lives as long as the module: for the life of the interpreter.
  return reinterpret_cast<PyTypeObject*>(checked(PyObject_GetAttrString(from.get(), name)).release());
}

}  // namespace

const LibraryTypes& library_types() {
  static const LibraryTypes types = {
      imported_type("collections", "deque"), imported_type("collections", "OrderedDict"), imported_type("collections", "defaultdict"),
      imported_type("functools", "partial"), imported_type("enum", "EnumMeta"),           imported_type("types", "MappingProxyType"),
      imported_type("functools", "_lru_cache_wrapper"), &PyCell_Type, imported_type("functools", "cached_property"),
      imported_type("operator", "attrgetter"), imported_type("operator", "itemgetter"), imported_type("operator", "methodcaller"),
  };
  return types;
}

}  // namespace tenon::python
