#include "python/library/torch_library.h"

#include <dlfcn.h>

#include <array>
#include <bit>
#include <memory>
#include <string>
#include <vector>

#include "python/library/torch_layout.h"
#include "python/library/torch_modes.h"
#include "python/library/torch_state.h"
#include "python/objects/graph_break.h"
#include "python/objects/imported.h"

namespace tenon::python {
namespace {

std::vector<void (*)(TorchLibrary&)> g_then;

constexpr std::array<const char*, kDTypeCount> kTorchNames = {"bool",    "uint8",    "int8",    "int16",   "int32",     "int64",
                                                              "float16", "bfloat16", "float32", "float64", "complex64", "complex128"};

Ref attribute(const Ref& object, const char* name) { return checked(PyObject_GetAttrString(object.get(), name)); }

template <class Function>
void find_symbol(Function& function, const char* name) {
  if (void* symbol = torch_symbol(name)) function = reinterpret_cast<Function>(symbol);
}

/// dlsym on a thread-local symbol gives the address in the calling thread.
void* dispatch_keys_of_this_thread() {
  void* keys = nullptr;
  find_symbol(keys, "_ZN3c104impl26raw_local_dispatch_key_setE");
  return keys;
}

constexpr std::int8_t kCpu = 0, kCuda = 1;  // c10::DeviceType

/// The bit of the thread's excluded keys that changes with autocast for a kind of device; 0 where torch does not say.
std::uint64_t autocast_bit(const TorchLibrary& torch, std::int8_t kind) {
  bool (*is_on)(std::int8_t) = nullptr;
  find_symbol(is_on, "_ZN2at8autocast19is_autocast_enabledEN3c1010DeviceTypeE");
  if (!is_on || !torch.set_autocast || !torch.autocast_dtype || !torch.dispatch_keys_of_thread) return 0;
  const auto* excluded = static_cast<const std::uint64_t*>(torch.dispatch_keys_of_thread()) + 1;
  const bool before = is_on(kind);
  torch.set_autocast(kind, !before);
  const std::uint64_t changed = *excluded;
  torch.set_autocast(kind, before);
  return std::has_single_bit(changed ^ *excluded) ? changed ^ *excluded : 0;
}

Ref registered_kernels(const Ref& module) {
  Ref entries;
  if (PyObject_HasAttrString(module.get(), "library")) entries = Ref::steal(PyObject_GetAttrString(attribute(module, "library").get(), "_impls"));
  PyErr_Clear();
  return entries && PySet_CheckExact(entries.get()) ? std::move(entries) : Ref{};
}

void find_objects(TorchLibrary& torch) {
  torch.tensor = attribute(torch.module, "Tensor");
  torch.parameter = attribute(attribute(torch.module, "nn"), "Parameter");
  torch.tensor_base = attribute(attribute(torch.module, "_C"), "TensorBase");
  torch.dtype = attribute(torch.module, "dtype");
  torch.device = attribute(torch.module, "device");
  torch.size = attribute(torch.module, "Size");
  torch.layout = attribute(torch.module, "layout");
  torch.memory_format = attribute(torch.module, "memory_format");
  torch.preserve_format = attribute(torch.module, "preserve_format");
  torch.generator = attribute(torch.module, "Generator");
  torch.empty_strided = attribute(torch.module, "empty_strided");
  torch.as_strided = attribute(torch.module, "as_strided");
  torch.strided = attribute(torch.module, "strided");
  torch.disable_subclass = attribute(attribute(torch.module, "_C"), "DisableTorchFunctionSubclass");
  torch.cpu = checked(PyObject_CallFunction(torch.device.get(), "s", "cpu"));
  torch.meta = checked(PyObject_CallFunction(torch.device.get(), "s", "meta"));
  torch.wrapper_subclass = attribute(torch.tensor, "_make_wrapper_subclass");
  for (std::size_t i = 0; i < kDTypeCount; ++i) torch.dtypes[i] = attribute(torch.module, kTorchNames[i]);
  torch.registered_kernels = registered_kernels(torch.module);
}

void find_functions(TorchLibrary& torch) {
  find_symbol(torch.empty_generic,
              "_ZN2at6detail21empty_strided_genericEN3c108ArrayRefIlEES3_PNS1_9AllocatorENS1_14DispatchKeySetENS1_10ScalarTypeE");
  find_symbol(torch.wrap, "_Z16THPVariable_WrapON2at10TensorBaseE");
  find_symbol(torch.autograd_state, "_ZN3c1013AutogradState13get_tls_stateEv");
  find_symbol(torch.function_mode_state, "_ZN2at4impl22PythonTorchFunctionTLS9get_stateEv");
  find_symbol(torch.default_dtype, "_ZN3c1031get_default_dtype_as_scalartypeEv");
  find_symbol(torch.autocast_dtype, "_ZN2at8autocast18get_autocast_dtypeEN3c1010DeviceTypeE");
  find_symbol(torch.set_autocast, "_ZN2at8autocast20set_autocast_enabledEN3c1010DeviceTypeEb");
  const void* (*context)() = nullptr;
  find_symbol(context, "_ZN2at13globalContextEv");
  torch.context = context ? context() : nullptr;
  find_symbol(torch.deterministic, "_ZNK2at7Context23deterministicAlgorithmsEv");
  torch.anomaly_on = static_cast<const bool*>(torch_symbol("_ZN5torch8autograd11AnomalyMode8_enabledE"));
  if (dispatch_keys_of_this_thread()) torch.dispatch_keys_of_thread = dispatch_keys_of_this_thread;
  TorchState::autocast_of_cpu = autocast_bit(torch, kCpu);
  TorchState::autocast_of_cuda = torch_symbol("aoti_torch_get_current_cuda_stream") ? autocast_bit(torch, kCuda) : 0;  // a torch without CUDA has none
}

/// Compares the fields of one tensor with what Python says about it.
bool fields_agree(PyObject* tensor) {
  if (Py_TYPE(tensor)->tp_basicsize < 24) return false;
  void* impl = layout::impl(tensor);
  Ref object = Ref::borrow(tensor);
  Ref shape = attribute(object, "shape");
  Ref strides = checked(PyObject_CallMethod(tensor, "stride", nullptr));
  const auto rank = static_cast<std::uint64_t>(PyTuple_GET_SIZE(shape.get()));
  if (layout::rank(impl) != rank) return false;
  for (std::uint64_t i = 0; i < rank; ++i) {
    if (layout::sizes(impl)[i] != PyLong_AsLongLong(PyTuple_GET_ITEM(shape.get(), i))) return false;
    if (layout::strides(impl)[i] != PyLong_AsLongLong(PyTuple_GET_ITEM(strides.get(), i))) return false;
  }
  Ref offset = checked(PyObject_CallMethod(tensor, "storage_offset", nullptr));
  if (layout::storage_offset(impl) != PyLong_AsLongLong(offset.get())) return false;
  if (layout::requires_grad(impl) != (attribute(object, "requires_grad").get() == Py_True)) return false;
  Ref version = attribute(object, "_version");
  if (!layout::version(impl) || layout::version(impl)->load() != PyLong_AsUnsignedLong(version.get())) return false;
  Ref item_bytes = checked(PyObject_CallMethod(tensor, "element_size", nullptr));
  Ref address = checked(PyObject_CallMethod(tensor, "data_ptr", nullptr));
  const auto data = reinterpret_cast<std::uintptr_t>(layout::data(impl, PyLong_AsSize_t(item_bytes.get())));
  return data == PyLong_AsSize_t(address.get()) && !layout::custom_sizes(impl) && !layout::has_tangent(impl);
}

/// The tensors of the self-check, made in a plain state whatever the caller's is: ranks on both sides of the inline limit, views with
/// offsets, leaves and views of leaves; tensors that the key set must tell apart; one of each dtype.
constexpr const char* kCheckProgram =
    "def tensors(torch, dtypes):\n"
    "    with torch.inference_mode(False), torch.enable_grad(), torch.device('cpu'):\n"
    "        a = torch.arange(24, dtype=torch.float32).reshape(2, 3, 4).add_(1).mul_(2)\n"
    "        w = torch.nn.Parameter(a.clone())\n"
    "        plain = [a, a[1:, :, ::2], a.permute(2, 0, 1), torch.zeros(1, 2, 1, 2, 1, 3, 2)[:, 1:], torch.zeros(()),\n"
    "                 torch.zeros(0, 3), w, w[0], torch.tensor(1.0)]\n"
    "        with torch.inference_mode():\n"
    "            inference = torch.zeros(2)\n"
    "        odd = [inference, torch.zeros(2, device='meta'), torch.zeros(2, dtype=torch.complex64).conj(),\n"
    "               torch._neg_view(torch.zeros(2))]\n"
    "        lazy = torch._lazy_clone(torch.zeros(2))\n"
    "        return plain, odd, [torch.zeros(1, dtype=d) for d in dtypes], lazy\n";

Ref check_tensors(const TorchLibrary& torch) {
  Ref scope = defined_by(kCheckProgram);
  Ref dtypes = checked(PyList_New(0));
  for (const Ref& dtype : torch.dtypes) checked(PyList_Append(dtypes.get(), dtype.get()));
  return checked(PyObject_CallFunctionObjArgs(PyDict_GetItemString(scope.get(), "tensors"), torch.module.get(), dtypes.get(), nullptr));
}

/// Finds torch's number of each dtype in the packed word.
bool find_scalar_types(TorchLibrary& torch, PyObject* tensors) {
  for (std::size_t i = 0; i < kDTypeCount; ++i) {
    const std::uint32_t word = layout::dtype_device(layout::impl(PyList_GET_ITEM(tensors, static_cast<Py_ssize_t>(i))));
    const std::uint32_t device = word >> 16;
    if (device != 0xff00u && device != 0) return false;  // type 0 is the CPU; its index is -1 or 0
    torch.scalar_types[i] = static_cast<std::uint8_t>(word);
    for (std::size_t j = 0; j < i; ++j)
      if (torch.scalar_types[j] == torch.scalar_types[i]) return false;
  }
  return true;
}

/// Whether a tangent is seen where there is one. By torch's own parts: `forward_ad.make_dual` compiles decompositions when it is first called.
bool tangent_agrees(const TorchLibrary& torch) {
  try {
    Ref parts = attribute(torch.module, "_C");
    Ref level = checked(PyObject_CallMethod(parts.get(), "_enter_dual_level", nullptr));
    Ref one = checked(PyObject_CallMethod(torch.module.get(), "ones", "i", 2));
    Ref dual = Ref::steal(PyObject_CallMethod(attribute(torch.module, "_VF").get(), "_make_dual", "OOO", one.get(), one.get(), level.get()));
    const bool seen = dual && layout::has_tangent(layout::impl(dual.get()));
    PyErr_Clear();
    Ref keywords = checked(Py_BuildValue("{sO}", "level", level.get()));
    checked(PyObject_Call(attribute(parts, "_exit_dual_level").get(), checked(PyTuple_New(0)).get(), keywords.get()));
    return seen;
  } catch (const PythonError&) {
    PyErr_Clear();  // the program is in a level of its own: nothing can be said
    return false;
  }
}

/// Whether the fields are where the layout that is set says.
bool layout_agrees(TorchLibrary& torch, const Ref& groups) {
  PyObject* plain = PyTuple_GET_ITEM(groups.get(), 0);
  PyObject* odd = PyTuple_GET_ITEM(groups.get(), 1);
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(plain); ++i)
    if (!fields_agree(PyList_GET_ITEM(plain, i))) return false;
  torch.plain_keys = layout::key_set(layout::impl(PyList_GET_ITEM(plain, 0)));
  torch.inference_keys = layout::key_set(layout::impl(PyList_GET_ITEM(odd, 0)));
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(plain); ++i)
    if (layout::key_set(layout::impl(PyList_GET_ITEM(plain, i))) != torch.plain_keys) return false;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(odd); ++i)
    if (layout::key_set(layout::impl(PyList_GET_ITEM(odd, i))) == torch.plain_keys) return false;
  const auto deleter_of = [](PyObject* tensor) { return layout::storage_deleter(layout::storage(layout::impl(tensor))); };
  torch.lazy_deleter = deleter_of(PyTuple_GET_ITEM(groups.get(), 3));
  if (torch.lazy_deleter == deleter_of(PyList_GET_ITEM(plain, 0))) return false;
  return find_scalar_types(torch, PyTuple_GET_ITEM(groups.get(), 2));
}

bool layout_is_known(TorchLibrary& torch) {
  Ref groups = check_tensors(torch);
  for (const layout::Shifts& shifts : layout::kKnownShifts) {
    layout::shifts = shifts;
    if (layout_agrees(torch, groups) && (shifts.tensor == 0 || tangent_agrees(torch))) return true;
  }
  layout::shifts = {};
  return false;
}

std::unique_ptr<TorchLibrary> load(Ref module) {
  const InferenceScope scope(false, checked(PyObject_CallMethod(module.get(), "is_inference_mode_enabled", nullptr)).is(Py_True));  // for what the checks make
  const Ref unseen = Ref::steal(PyObject_CallMethod(attribute(module, "_C").get(), "_DisableTorchDispatch", nullptr));  // by modes of the program, as long as it lives
  if (!unseen) PyErr_Clear();
  auto torch = std::make_unique<TorchLibrary>();
  torch->module = std::move(module);
  find_objects(*torch);
  find_functions(*torch);
  torch->direct_fields = layout_is_known(*torch);
  if (!torch->direct_fields) torch->fallback_reason = "this torch keeps the fields of a tensor elsewhere; attributes are read through Python";
  for (void (*then)(TorchLibrary&) : g_then) then(*torch);
  return torch;
}

TorchLibrary* g_torch = nullptr;  // lives as long as the process: other threads may be reading it
bool g_failed = false;

/// torch from sys.modules once its import has finished; nothing before.
Ref imported_torch() {
  Ref name = checked(PyUnicode_FromString("torch"));
  Ref module = Ref::steal(PyImport_GetModule(name.get()));
  if (!module) {
    PyErr_Clear();
    return {};
  }
  // `torch.compile` is defined near the end of torch/__init__.py: its presence says that the import is (all but) done.
  for (const char* needed : {"nn", "Tensor", "compile"})
    if (!PyObject_HasAttrString(module.get(), needed)) return {};
  return module;
}

}  // namespace

std::optional<DType> TorchLibrary::dtype_of(PyObject* torch_dtype) const {
  for (std::size_t i = 0; i < kDTypeCount; ++i)
    if (dtypes[i].get() == torch_dtype) return static_cast<DType>(i);
  return std::nullopt;
}

std::optional<DType> TorchLibrary::dtype_of_scalar_type(std::uint8_t number) const {
  for (std::size_t i = 0; i < kDTypeCount; ++i)
    if (scalar_types[i] == number) return static_cast<DType>(i);
  return std::nullopt;
}

void* torch_symbol(const char* name) noexcept {
  for (const char* library : {"libtorch_python.so", "libtorch_cpu.so", "libc10.so", "libtorch_cuda.so"}) {
    void* handle = dlopen(library, RTLD_NOLOAD | RTLD_LAZY);
    if (!handle) continue;
    void* symbol = dlsym(handle, name);
    dlclose(handle);
    if (symbol) return symbol;
  }
  return nullptr;
}

void when_torch_is_found(void (*then)(TorchLibrary&)) { g_then.push_back(then); }

const TorchLibrary* known_torch_library() noexcept { return g_torch; }

const TorchLibrary* torch_library() {
  if (g_torch || g_failed) return g_torch;
  Ref module = imported_torch();
  if (!module) return nullptr;
  try {
    auto torch = load(std::move(module));
    if (!g_torch) g_torch = torch.release();  // another thread may have been faster while Python ran
  } catch (const std::exception&) {
    g_failed = true;
    PyErr_WriteUnraisable(nullptr);
  }
  return g_torch;
}

}  // namespace tenon::python
