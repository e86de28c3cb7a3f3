#include "python/builtins/table.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "python/builtins/gradients.h"
#include "python/builtins/handlers.h"
#include "python/builtins/varying_sizes.h"
#include "python/compat/object_layout.h"
#include "python/evaluator/evaluator.h"
#include "python/objects/imported.h"
#include "python/objects/names.h"

namespace tenon::python {
namespace {

struct Listed {
  const char* module;
  BuiltinClass kind;
  const char* names;  // separated by blanks; "Type.method" for methods
};

constexpr Listed kListed[] = {
    {"builtins", BuiltinClass::structural, "list tuple dict zip enumerate reversed slice range object property staticmethod classmethod"},
    {"builtins", BuiltinClass::element_calling,
     "set frozenset int float complex bool bytes abs divmod pow round any all ord chr bin hex oct ascii"},
    {"builtins", BuiltinClass::callback, "map filter sorted min max"},
    {"builtins", BuiltinClass::structural, "dict.fromkeys str.maketrans bytes.fromhex int.from_bytes float.fromhex tuple.__new__ list.__new__ dict.__new__ set.__new__ frozenset.__new__ int.__new__ float.__new__ str.__new__ BaseException.__new__"},
    {"builtins", BuiltinClass::structural, "property.getter property.setter property.deleter"},
    {"sys", BuiltinClass::element_calling, "intern"},
    {"collections", BuiltinClass::structural, "deque OrderedDict defaultdict"},
    {"types", BuiltinClass::structural, "MethodType"},
    {"functools", BuiltinClass::structural, "partial"},
    {"functools", BuiltinClass::callback, "reduce cmp_to_key _lru_cache_wrapper"},
    {"weakref", BuiltinClass::structural, "ref"},
    {"re", BuiltinClass::element_calling, "Pattern.match Pattern.fullmatch Pattern.search Pattern.split Pattern.findall Pattern.finditer"},
    {"re", BuiltinClass::callback, "Pattern.sub Pattern.subn"},
    {"re", BuiltinClass::element_calling, "Match.group Match.groups Match.groupdict Match.start Match.end Match.span Match.expand Match.__getitem__"},
    {"bisect", BuiltinClass::element_calling, "bisect bisect_left bisect_right"},
    {"types", BuiltinClass::structural, "MappingProxyType SimpleNamespace GenericAlias"},
    {"itertools", BuiltinClass::structural, "chain count cycle repeat islice product zip_longest permutations combinations pairwise compress chain.from_iterable tee"},
    {"itertools", BuiltinClass::callback, "accumulate starmap takewhile dropwhile filterfalse groupby"},
    {"operator", BuiltinClass::element_calling,
     "neg pos abs inv invert not_ truth index concat length_hint itemgetter attrgetter methodcaller"},
    {"math", BuiltinClass::element_calling,
     "sqrt exp log log2 log10 log1p expm1 sin cos tan asin acos atan atan2 sinh cosh tanh floor ceil trunc fabs fmod hypot pow isnan isinf isfinite isclose prod gcd lcm comb factorial copysign degrees radians erf erfc gamma lgamma frexp ldexp modf remainder dist fsum isqrt perm asinh acosh atanh cbrt exp2 nextafter ulp sumprod fma"},
};

template <int operation>
std::optional<Ref> binary_operator(Evaluator& evaluator, Arguments& arguments) {
  if (arguments.positional() != 2 || arguments.named() != 0) throw GraphBreak("a function of the module operator with other than two arguments");
  return evaluator.operators().binary(operation, arguments[0], arguments[1]);
}
template <int operation>
std::optional<Ref> comparison(Evaluator& evaluator, Arguments& arguments) {
  if (arguments.positional() != 2 || arguments.named() != 0) throw GraphBreak("a function of the module operator with other than two arguments");
  return evaluator.operators().compare(operation, arguments[0], arguments[1]);
}

template <bool wanted>
std::optional<Ref> identity(Evaluator& evaluator, Arguments& arguments) {
  if (arguments.positional() != 2 || arguments.named() != 0) throw GraphBreak("a function of the module operator with other than two arguments");
  return Ref::borrow(evaluator.operators().is_same(arguments.values[0], arguments.values[1]) == wanted ? Py_True : Py_False);
}

struct Special {
  const char *module, *name;
  std::optional<Ref> (*handler)(Evaluator&, Arguments&);
};

constexpr Special kSpecial[] = {
    {"builtins", "len", builtin_len},
    {"builtins", "isinstance", builtin_isinstance},
    {"builtins", "issubclass", builtin_issubclass},
    {"builtins", "getattr", builtin_getattr},
    {"builtins", "hasattr", builtin_hasattr},
    {"builtins", "setattr", builtin_setattr},
    {"builtins", "iter", builtin_iter},
    {"builtins", "next", builtin_next},
    {"builtins", "type", builtin_type},
    {"builtins", "str", builtin_str},
    {"builtins", "repr", builtin_repr},
    {"builtins", "format", builtin_format},
    {"builtins", "bool", builtin_bool},
    {"builtins", "super", builtin_super},
    {"builtins", "vars", builtin_vars},
    {"builtins", "hash", builtin_hash},
    {"builtins", "callable", builtin_callable},
    {"builtins", "sum", builtin_sum},
    {"math", "prod", math_product},
    {"builtins", "id", builtin_id},
    {"sys", "exc_info", exc_info},
    {"sys", "exception", handled_exception},
    {"os", "fspath", os_fspath},
    {"types", "FunctionType.__get__", bind_function},
    {"_warnings", "warn", issue_warning},
    {"_warnings", "_filters_mutated", note_changed_filters},
    {"operator", "setitem", operator_setitem},
    {"operator", "delitem", operator_delitem},
    {"operator", "add", binary_operator<0>},
    {"operator", "and_", binary_operator<1>},
    {"operator", "floordiv", binary_operator<2>},
    {"operator", "lshift", binary_operator<3>},
    {"operator", "matmul", binary_operator<4>},
    {"operator", "mul", binary_operator<5>},
    {"operator", "mod", binary_operator<6>},
    {"operator", "or_", binary_operator<7>},
    {"operator", "pow", binary_operator<8>},
    {"operator", "rshift", binary_operator<9>},
    {"operator", "sub", binary_operator<10>},
    {"operator", "truediv", binary_operator<11>},
    {"operator", "xor", binary_operator<12>},
    {"operator", "iadd", binary_operator<13>},
    {"operator", "iand", binary_operator<14>},
    {"operator", "ifloordiv", binary_operator<15>},
    {"operator", "ilshift", binary_operator<16>},
    {"operator", "imatmul", binary_operator<17>},
    {"operator", "imul", binary_operator<18>},
    {"operator", "imod", binary_operator<19>},
    {"operator", "ior", binary_operator<20>},
    {"operator", "ipow", binary_operator<21>},
    {"operator", "irshift", binary_operator<22>},
    {"operator", "isub", binary_operator<23>},
    {"operator", "itruediv", binary_operator<24>},
    {"operator", "ixor", binary_operator<25>},
    {"operator", "is_", identity<true>},
    {"operator", "is_not", identity<false>},
    {"operator", "lt", comparison<Py_LT>},
    {"operator", "le", comparison<Py_LE>},
    {"operator", "eq", comparison<Py_EQ>},
    {"operator", "ne", comparison<Py_NE>},
    {"operator", "gt", comparison<Py_GT>},
    {"operator", "ge", comparison<Py_GE>},
    {"operator", "getitem", operator_getitem},
    {"operator", "contains", operator_contains},
    {"builtins", "delattr", builtin_delattr},
    {"builtins", "__build_class__", build_class},
    {"builtins", "type.__call__", type_call},
    {"builtins", "type.__new__", type_new},
    {"builtins", "type.__init__", type_init},
    {"builtins", "type.__instancecheck__", type_instance_check},
    {"_abc", "_abc_init", init_abstract_class},
    {"_abc", "_abc_instancecheck", abstract_instance_check},
    {"_abc", "_abc_subclasscheck", abstract_subclass_check},
    {"builtins", "object.__delattr__", object_delattr},
    {"builtins", "object.__reduce_ex__", object_reduce},
    {"collections", "_count_elements", count_elements},
    {"heapq", "heappush", change_list_in_c},
    {"heapq", "heappop", change_list_in_c},
    {"heapq", "heapify", change_list_in_c},
    {"heapq", "_heapify_max", change_list_in_c},
    {"heapq", "_heappop_max", change_list_in_c},
    {"heapq", "_heapreplace_max", change_list_in_c},
    {"heapq", "heapreplace", change_list_in_c},
    {"heapq", "heappushpop", change_list_in_c},
    {"bisect", "insort", change_list_in_c},
    {"bisect", "insort_left", change_list_in_c},
    {"bisect", "insort_right", change_list_in_c},
    {"builtins", "object.__new__", object_new},
    {"builtins", "object.__init__", object_init},
    {"builtins", "object.__getattribute__", object_getattribute},
    {"builtins", "object.__setattr__", object_setattr},
    {"builtins", "list.append", list_append},
    {"builtins", "dict.get", dict_get},
    {"builtins", "dict.__getitem__", dict_getitem},
    {"builtins", "dict.__contains__", dict_contains},
};

template <std::size_t kSize>
struct FlagName {
  char text[kSize];
  constexpr FlagName(const char (&name)[kSize]) { std::ranges::copy(name, text); }
};

template <FlagName kName>
Handled flag_read(Evaluator& evaluator, Arguments&) {
  return read_flag(evaluator, kName.text);
}

constexpr Special kTorch[] = {
    {"torch._C", "_has_torch_function", any_overrides_torch_functions},
    {"torch._C", "_has_torch_function_unary", overrides_torch_functions},
    {"torch._C", "_has_torch_function_variadic", overrides_torch_functions},
    {"torch._C", "_get_tracing_state", answer_none},
    {"torch._C", "_log_api_usage_once", answer_none},
    {"torch._C", "_is_tracing", answer_false},
    {"torch._C", "is_grad_enabled", state_read},
    {"torch._C", "_len_torch_dispatch_stack", state_read},
    {"torch._C", "is_inference_mode_enabled", state_read},
    {"torch._C", "is_autocast_enabled", state_read},
    {"torch._C", "is_autocast_cpu_enabled", state_read},
    {"torch._C", "is_anomaly_enabled", state_read},
    {"torch._C", "get_default_dtype", state_read},
    {"torch._C", "_get_cudnn_enabled", flag_read<"_get_cudnn_enabled">},
    {"torch._C", "_get_mkldnn_enabled", flag_read<"_get_mkldnn_enabled">},
    {"torch._C", "_get_deterministic_algorithms", flag_read<"_get_deterministic_algorithms">},
    {"torch._C", "_get_deterministic_algorithms_warn_only", flag_read<"_get_deterministic_algorithms_warn_only">},
    {"torch._C", "_is_torch_function_enabled", state_read},
    {"torch._C", "_are_functorch_transforms_active", state_read},
    {"torch._C", "_functorch._are_functorch_transforms_active", state_read},
    {"torch._C", "_set_grad_enabled", set_grad_enabled},
    {"torch._C", "_is_torch_function_mode_enabled", answer_false},
    {"torch._C", "_is_autocast_available", state_read},
    {"torch._C", "_get_privateuse1_backend_name", state_read},
    {"torch._C", "_cuda_getDeviceCount", state_read},  // these are a process's
    {"torch._C", "_cuda_isInBadFork", state_read},
    {"torch._C", "_cuda_getDevice", flag_read<"_cuda_getDevice">},
    {"torch._C", "set_autocast_enabled", set_autocast_enabled},
    {"torch._C", "get_autocast_dtype", get_autocast_dtype},
    {"torch._C", "set_autocast_dtype", set_autocast_dtype},
    {"torch._C", "is_autocast_cache_enabled", is_autocast_cache_enabled},
    {"torch._C", "set_autocast_cache_enabled", set_autocast_cache_enabled},
    {"torch._C", "autocast_increment_nesting", autocast_increment_nesting},
    {"torch._C", "autocast_decrement_nesting", autocast_decrement_nesting},
    {"torch._C", "clear_autocast_cache", clear_autocast_cache},
    {"torch", "_amp_foreach_non_finite_check_and_unscale_", check_and_unscale},
    {"torch", "_amp_update_scale_", update_scale},
    {"torch", "_fused_sgd_", fused_sgd},
    {"torch", "_fused_adam_", fused_adam},
    {"torch", "_fused_adamw_", fused_adamw},
    {"torch", "_fused_adagrad_", fused_adagrad},
};

struct Conversion {
  const char *module, *name;
  PyObject* Names::* method;
};
constexpr Conversion kConversions[] = {
    {"builtins", "int", &Names::__int__},       {"builtins", "float", &Names::__float__}, {"builtins", "abs", &Names::__abs__},
    {"builtins", "round", &Names::__round__},   {"math", "floor", &Names::__floor__},     {"math", "ceil", &Names::__ceil__},
    {"math", "trunc", &Names::__trunc__},       {"builtins", "bytes", &Names::__bytes__},
    {"builtins", "reversed", &Names::__reversed__}, {"builtins", "divmod", &Names::__divmod__}, {"builtins", "pow", &Names::__pow__},
    {"operator", "index", &Names::__index__},
};

using Table = std::unordered_map<PyObject*, Builtin>;

/// The object at a dotted path below a module, or empty when this version has none.
Ref at_path(PyObject* module, std::string_view path) {
  Ref object = Ref::borrow(module);
  while (object && !path.empty()) {
    const std::size_t dot = path.find('.');
    Ref name = checked(PyUnicode_FromStringAndSize(path.data(), static_cast<Py_ssize_t>(std::min(dot, path.size()))));
    path = dot == std::string_view::npos ? std::string_view{} : path.substr(dot + 1);
    object = Ref::steal(PyObject_GetAttr(object.get(), name.get()));
  }
  if (!object) PyErr_Clear();
  return object;
}

void put(Table& table, const char* module, std::string_view name, Builtin entry) {
  Ref from = checked(imported(module));
  // Kept for the life of the process, so that an address in the table stays this function's.
  if (Ref object = at_path(from.get(), name)) table[object.release()] = entry;
}

Table make_table() {
  Table table;
  for (const Listed& listed : kListed) {
    std::string_view rest = listed.names;
    while (!rest.empty()) {
      const std::size_t blank = rest.find(' ');
      put(table, listed.module, rest.substr(0, blank), {listed.kind});
      rest = blank == std::string_view::npos ? std::string_view{} : rest.substr(blank + 1);
    }
  }
  for (const Special& special : kSpecial) put(table, special.module, special.name, {BuiltinClass::special, special.handler});
  for (const Conversion& conversion : kConversions) {
    Ref module = checked(imported(conversion.module));
    if (Ref function = at_path(module.get(), conversion.name)) table[function.get()].method = &(names().*conversion.method);
  }
  return table;
}

bool name_is_one_of(PyObject* name, std::string_view names) {
  const char* chars = PyUnicode_AsUTF8(name);
  const std::string wanted = std::string(" ") + (chars ? chars : "") + " ";
  return names.find(wanted) != std::string_view::npos;
}

}  // namespace

const Builtin* find_builtin(PyObject* callable) {
  static Table* const table = new Table(make_table());
  static bool torch_added = false;
  if (!torch_added && is_imported("torch._C")) {
    torch_added = true;
    for (const Special& special : kTorch) put(*table, special.module, special.name, {BuiltinClass::special, special.handler});
  }
  const auto found = table->find(callable);
  return found == table->end() ? nullptr : &found->second;
}

bool is_builtin_callable(PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  return PyCFunction_Check(object) || type == &PyMethodDescr_Type || type == &PyWrapperDescr_Type || type == &PyClassMethodDescr_Type || type == compat::method_wrapper_type();
}

bool is_pure_callable(PyTypeObject* type) {
  const std::string_view name = type->tp_name;
  return name == "functools.KeyWrapper";
}

bool takes_a_key(PyObject* name) {
  return name_is_one_of(name, " add discard remove get pop setdefault move_to_end __contains__ __getitem__ __setitem__ __delitem__ ");
}

bool is_mutating_method(PyObject* self, PyObject* name) {
  if (PyList_Check(self))
    return name_is_one_of(name, " append extend insert pop remove clear sort reverse __setitem__ __delitem__ __iadd__ __imul__ __init__ ");
  if (PyDict_Check(self))
    return name_is_one_of(name, " update setdefault pop popitem clear move_to_end __setitem__ __delitem__ __ior__ __init__ __missing__ ");
  if (PyAnySet_Check(self))
    return name_is_one_of(name, " add discard remove pop clear update difference_update intersection_update symmetric_difference_update __ior__ __iand__ __isub__ __ixor__ __init__ ");
  if (PyType_IsSubtype(Py_TYPE(self), library_types().deque))
    return name_is_one_of(name, " append appendleft pop popleft extend extendleft clear rotate remove insert reverse __setitem__ __delitem__ __iadd__ __imul__ __init__ ");
  return false;
}

PyObject* compiled_function_inside(PyObject* callable) {
  const std::string_view type = Py_TYPE(callable)->tp_name;
  if (type.find("tenon.") != 0) return nullptr;
  Ref wrapped = Ref::steal(PyObject_GetAttr(callable, names().__wrapped__));
  if (!wrapped) PyErr_Clear();
  return wrapped.get();  // the compiled function keeps it
}

}  // namespace tenon::python
