#include "python/results/torch_results.h"

#include <cstring>
#include <memory>
#include <numeric>
#include <vector>

#include "core/abi/dlpack_types.h"
#include "python/library/torch_layout.h"
#include "python/objects/graph_break.h"
#include "python/objects/imported.h"
#include "python/objects/pending_exception.h"
#include "python/results/pool_block.h"

namespace tenon::python {
namespace {

/// c10::DataPtr: pointer, deleter and its context (a std::unique_ptr whose deleter comes first), device {type, index}.
struct DataPointer {
  void* data;
  void (*deleter)(void*);
  void* context;
  std::uint16_t device;
};
constexpr std::uint16_t kCpuDevice = 0xff00;  // type 0, index -1

/// The mirror of c10::Allocator: the same virtual functions in the same order, so that torch can call them. Tensors whose memory
/// comes from it are resizable, which those made by DLPack or from_blob are not.
class PoolAllocator {
 public:
  virtual ~PoolAllocator() = default;
  virtual DataPointer allocate(std::size_t bytes) {
    const PoolBlock block = take_pool_block(bytes ? bytes : 1);
    if (!block.data) throw std::bad_alloc();
    return {block.data, release_pool_block, block.context, kCpuDevice};
  }
  virtual bool is_simple_data_ptr(const DataPointer&) const { return false; }
  virtual void (*raw_deleter() const)(void*) { return nullptr; }
  virtual void copy_data(void* target, const void* source, std::size_t bytes) const { std::memcpy(target, source, bytes); }
};

PoolAllocator g_allocator;

thread_local void* t_lent_memory = nullptr;

/// Gives memory that belongs to somebody else. A storage remembers its allocator, so there is one for good.
class LendingAllocator final : public PoolAllocator {
 public:
  DataPointer allocate(std::size_t) override { return {t_lent_memory, [](void*) {}, nullptr, kCpuDevice}; }
};

LendingAllocator g_lending_allocator;

/// torch's detail::empty_strided_generic with our allocator.
void* new_tensor(PoolAllocator& allocator, const TorchLibrary& torch, DType dtype, std::span<const std::int64_t> sizes, std::span<const std::int64_t> strides) {
  void* tensor = nullptr;
  torch.empty_generic(&tensor, {sizes.data(), sizes.size()}, {strides.data(), strides.size()}, &allocator, torch.plain_keys,
                      static_cast<std::int8_t>(torch.scalar_types[static_cast<std::size_t>(dtype)]));
  return tensor;
}

/// That, then THPVariable_Wrap, which takes the tensor over.
PyObject* new_tensor_from(PoolAllocator& allocator, const TorchLibrary& torch, DType dtype, std::span<const std::int64_t> sizes,
                          std::span<const std::int64_t> strides) {
  void* tensor = nullptr;
  try {
    tensor = new_tensor(allocator, torch, dtype, sizes, strides);
  } catch (const std::exception& e) {
    PyErr_SetString(PyExc_MemoryError, e.what());
    return nullptr;
  }
  return torch.wrap(&tensor);
}

PyObject* new_pool_tensor(const TorchLibrary& torch, DType dtype, std::span<const std::int64_t> sizes,
                          std::span<const std::int64_t> strides, void*& data) {
  PyObject* object = new_tensor_from(g_allocator, torch, dtype, sizes, strides);
  if (object) data = layout::storage_data(layout::storage(layout::impl(object)));
  return object;
}

Ref address_of(PyObject* tensor) { return checked(PyObject_CallMethod(tensor, "data_ptr", nullptr)); }

/// What DLPack needs of a tensor, freed by whoever takes it.
struct LentTensor {
  DLManagedTensorVersioned managed{};
  std::vector<std::int64_t> sizes, strides;
};

Ref dlpack_tensor(const TorchLibrary& torch, DType dtype, std::span<const std::int64_t> sizes, std::span<const std::int64_t> strides, void* data) {
  DLManagedTensorVersioned* lent = lent_memory({}, dtype, sizes, strides, data);
  Ref capsule = Ref::steal(PyCapsule_New(lent, "dltensor_versioned", nullptr));
  if (!capsule) {
    lent->deleter(lent);
    throw PythonError();
  }
  Ref native = checked(PyObject_GetAttrString(torch.module.get(), "_C"));
  return checked(PyObject_CallMethod(native.get(), "_from_dlpack", "O", capsule.get()));
}

}  // namespace

Ref empty_strided(const TorchLibrary& torch, PyObject* device, DType dtype, std::span<const std::int64_t> sizes, std::span<const std::int64_t> strides) {
  Ref kwargs = checked(PyDict_New());
  checked(PyDict_SetItemString(kwargs.get(), "dtype", torch.dtypes[static_cast<std::size_t>(dtype)].get()));
  checked(PyDict_SetItemString(kwargs.get(), "device", device));
  Ref args = checked(PyTuple_Pack(2, integer_tuple(sizes).get(), integer_tuple(strides).get()));
  return checked(PyObject_Call(torch.empty_strided.get(), args.get(), kwargs.get()));
}

DLManagedTensorVersioned* lent_memory(ir::Device device, DType dtype, std::span<const std::int64_t> sizes, std::span<const std::int64_t> strides, void* data) {
  auto lent = std::make_unique<LentTensor>();
  lent->sizes.assign(sizes.begin(), sizes.end());
  lent->strides.assign(strides.begin(), strides.end());
  lent->managed.version = {1, 0};
  lent->managed.manager_ctx = lent.get();
  lent->managed.deleter = [](DLManagedTensorVersioned* self) { delete static_cast<LentTensor*>(self->manager_ctx); };
  lent->managed.dl_tensor = {data, ir::dlpack_device(device), static_cast<std::int32_t>(sizes.size()), dlpack_type(dtype), lent->sizes.data(), lent->strides.data(), 0};
  return &lent.release()->managed;
}

Ref integer_tuple(std::span<const std::int64_t> values) {
  Ref tuple = checked(PyTuple_New(static_cast<Py_ssize_t>(values.size())));
  for (std::size_t i = 0; i < values.size(); ++i)
    PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), checked(PyLong_FromLongLong(values[i])).release());
  return tuple;
}

Ref crossed_over(PyObject* object, TensorKind kind) {
  if (kind == TensorKind::array) return checked(PyObject_CallMethod(object, "numpy", nullptr));
  return checked(PyObject_CallMethod(torch_library()->module.get(), "from_numpy", "O", object));
}

PyObject* new_torch_tensor(const TorchLibrary& torch, DType dtype, std::span<const std::int64_t> sizes,
                           std::span<const std::int64_t> strides, void*& data) {
  if (torch.direct_results) return new_pool_tensor(torch, dtype, sizes, strides, data);
  try {
    Ref tensor = empty_strided(torch, torch.cpu.get(), dtype, sizes, strides);
    data = PyLong_AsVoidPtr(address_of(tensor.get()).get());
    return tensor.release();
  } catch (const PythonError&) {
    return nullptr;
  }
}

TorchRef new_plain_tensor(const TorchLibrary& torch, DType dtype, std::span<const std::int64_t> sizes, std::span<const std::int64_t> strides, void*& data) {
  TorchRef made = TorchRef::steal(new_tensor(g_allocator, torch, dtype, sizes, strides));
  data = layout::storage_data(layout::storage(made.get()));
  return made;
}

Ref torch_tensor_over(const TorchLibrary& torch, DType dtype, std::span<const std::int64_t> sizes, std::span<const std::int64_t> strides,
                      void* data) {
  if (!torch.direct_results) return dlpack_tensor(torch, dtype, sizes, strides, data);
  t_lent_memory = data;
  return checked(new_tensor_from(g_lending_allocator, torch, dtype, sizes, strides));
}

Ref torch_view(const TorchLibrary& torch, PyObject* base, std::span<const std::int64_t> sizes, std::span<const std::int64_t> strides,
               std::int64_t storage_offset) {
  return checked(PyObject_CallFunction(torch.as_strided.get(), "OOOL", base, integer_tuple(sizes).get(), integer_tuple(strides).get(),
                                       static_cast<long long>(storage_offset)));
}

namespace {

/// Whether a tensor made in pool memory cannot be told from one of torch's own.
bool results_are_ordinary(const TorchLibrary& torch) {
  if (!torch.empty_generic || !torch.wrap) return false;
  const std::int64_t sizes[] = {2, 3}, strides[] = {1, 2};
  void* data = nullptr;
  Ref made = checked(new_pool_tensor(torch, DType::f32, sizes, strides, data));
  const char* program =
      "def ordinary(torch, made, address):\n"
      "    with torch.inference_mode(False), torch.no_grad(), torch.device('cpu'):\n"
      "        want = torch.empty_strided((2, 3), (1, 2), dtype=torch.float32)\n"
      "        same = (type(made) is torch.Tensor and made.dtype == want.dtype and made.shape == want.shape and made.stride() == want.stride()\n"
      "                and made.device == want.device and not made.requires_grad and made.data_ptr() == address\n"
      "                and made.untyped_storage().nbytes() == 24 and made.untyped_storage().resizable()\n"
      "                and torch._C._dispatch_keys(made) == torch._C._dispatch_keys(want))\n"
      "        made.fill_(7)\n"
      "        return same and made.resize_(100)[0].item() == 7 and made.numel() == 100\n";
  Ref scope = defined_by(program);
  Ref address = checked(PyLong_FromVoidPtr(data));
  Ref answer = checked(PyObject_CallFunctionObjArgs(PyDict_GetItemString(scope.get(), "ordinary"), torch.module.get(), made.get(), address.get(), nullptr));
  return answer.is(Py_True);
}

}  // namespace

void choose_memory_of_results(TorchLibrary& torch) {
  torch.direct_results = torch.direct_fields && results_are_ordinary(torch);
  if (torch.direct_fields && !torch.direct_results) torch.fallback_reason = "results are allocated by torch.empty_strided";
}

}  // namespace tenon::python
