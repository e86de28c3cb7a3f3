#include "python/results/device_memory.h"

#include <fmt/format.h>

#include <mutex>
#include <set>
#include <unordered_map>

#include "python/library/torch_device.h"
#include "python/library/torch_exports.h"
#include "python/objects/gil.h"
#include "python/objects/graph_break.h"
#include "python/objects/pending_exception.h"
#include "python/session/session.h"

namespace tenon::python {
namespace {

/// A block is an ordinary tensor of bytes, which torch's allocator frees in the order of the stream that is current where it is made.
class TensorBlocks {
 public:
  void* allocate(const TorchDevice& device, std::size_t bytes) {
    const TorchExports& torch = torch_exports();
    const auto size = static_cast<std::int64_t>(bytes);
    const std::int64_t stride = 1;
    TorchExports::Tensor tensor = nullptr;
    constexpr std::int32_t kByte = 0;  // c10::ScalarType::Byte
    if (torch.empty_strided(1, &size, &stride, kByte, device.torch_type, device.device.index, &tensor) != 0) return nullptr;
    void* memory = nullptr;
    if (torch.data(tensor, &memory) != 0 || !memory) {
      torch.delete_tensor(tensor);
      return nullptr;
    }
    const std::lock_guard lock(mutex_);
    tensors_.emplace(memory, tensor);
    return memory;
  }

  void release(void* memory) {
    TorchExports::Tensor tensor = nullptr;
    {
      const std::lock_guard lock(mutex_);
      const auto found = tensors_.find(memory);
      if (found == tensors_.end()) return;
      tensor = found->second;
      tensors_.erase(found);
    }
    torch_exports().delete_tensor(tensor);
  }

 private:
  std::mutex mutex_;
  std::unordered_map<void*, TorchExports::Tensor> tensors_;  // by address
};

TensorBlocks& blocks() {
  static TensorBlocks& all = *new TensorBlocks;  // the session may give memory back at the very end
  return all;
}

/// The stream as torch names it to Python.
void* stream_through_python(const TorchDevice& device) {
  const GilHeld gil;
  const PendingException pending;
  Ref accelerator = Ref::steal(PyObject_GetAttrString(known_torch_library()->module.get(), "accelerator"));
  Ref stream = accelerator ? Ref::steal(PyObject_CallMethod(accelerator.get(), "current_stream", "O", device.object.get())) : Ref();
  Ref handle = stream ? Ref::steal(PyObject_GetAttrString(stream.get(), "native_handle")) : Ref();
  void* found = handle && PyLong_Check(handle.get()) ? PyLong_AsVoidPtr(handle.get()) : nullptr;
  PyErr_Clear();
  return found;
}

/// The handle of the accelerator's current stream.
void* stream_of_accelerator(const TorchDevice& device) {
  const TorchExports& torch = torch_exports();
  TorchExports::Stream stream = nullptr;
  if (!torch.numbered_stream || !torch.number_of_stream || !torch.delete_stream) return stream_through_python(device);
  if (torch.numbered_stream(device.device.index, &stream) != 0) return nullptr;
  std::int64_t number = 0;
  void* handle = nullptr;
  if (torch.number_of_stream(stream, &number) == 0 && number != 0 && (!torch.handle_of_stream || torch.handle_of_stream(stream, &handle) != 0)) handle = stream_through_python(device);
  torch.delete_stream(stream);
  return handle;
}

/// DLPack's table gives null for the default stream, and for devices of which it knows no streams.
void* current_stream(void* context, DLDevice id) {
  void* stream = nullptr;
  if (id.device_type == kDLCUDA && torch_exports().cuda_stream && torch_exports().cuda_stream(id.device_id, &stream) == 0) return stream;
  if (torch_exports().current_stream(id.device_type, id.device_id, &stream) == 0 && stream) return stream;
  return stream_of_accelerator(*static_cast<const TorchDevice*>(context));
}

void hand_over(TenonSession* host, const TorchDevice& device) {
  static std::set<const TorchDevice*>& done = *new std::set<const TorchDevice*>;  // with the GIL
  if (!done.insert(&device).second) return;
  TenonDriverDevice driver{};
  driver.struct_size = sizeof driver;
  driver.device = ir::dlpack_device(device.device);
  driver.context = const_cast<TorchDevice*>(&device);
  driver.allocate = [](void* context, DLDevice, std::size_t bytes, void*) { return blocks().allocate(*static_cast<const TorchDevice*>(context), bytes); };
  driver.release = [](void*, DLDevice, void* memory, std::size_t, void*) { blocks().release(memory); };
  driver.current_stream = current_stream;
  tenon_session_set_device(host, &driver);  // where that fails the plugin's own memory is used
}

}  // namespace

std::string why_not_served(ir::Device device, const std::vector<std::string>& backends) {
  TenonSession* host = session();
  if (!host) throw PythonError();
  hand_over(host, torch_device(device));
  std::vector<const char*> names;
  for (const std::string& name : backends) names.push_back(name.c_str());
  if (tenon_session_open_device(host, names.data(), names.size(), ir::dlpack_device(device)) == TENON_OK) return {};
  return fmt::format("a tensor on device '{}': {}", name_of(device), tenon_last_error()->text);
}

}  // namespace tenon::python
