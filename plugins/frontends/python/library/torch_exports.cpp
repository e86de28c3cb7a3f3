#include "python/library/torch_exports.h"

#include <string>
#include <string_view>

#include "python/library/torch_library.h"

namespace tenon::python {
namespace {

/// DLPackExchangeAPI 1.x, as far as it is used.
struct ExchangeTable {
  DLPackVersion version;
  void* older;
  void* allocate;
  void* give;
  int (*take_over)(DLManagedTensorVersioned* tensor, void** object);
  int (*describe)(void* object, DLTensor* described);
  int (*current_stream)(DLDeviceType kind, std::int32_t index, void** stream);
};

const ExchangeTable* exchange_table(const TorchLibrary& torch) {
  Ref capsule = Ref::steal(PyObject_GetAttrString(torch.tensor.get(), "__dlpack_c_exchange_api__"));
  const auto* table = capsule ? static_cast<const ExchangeTable*>(PyCapsule_GetPointer(capsule.get(), "dlpack_exchange_api")) : nullptr;
  PyErr_Clear();
  return table && table->version.major == 1 ? table : nullptr;
}

template <class Function>
void find(Function& function, const char* name) {
  function = reinterpret_cast<Function>(torch_symbol(name));
}

TorchExports look_up() {
  TorchExports exports;
  const TorchLibrary* torch = known_torch_library();
  const ExchangeTable* table = torch && torch->wrap ? exchange_table(*torch) : nullptr;
  if (!table) return exports;
  find(exports.delete_tensor, "aoti_torch_delete_tensor_object");
  find(exports.data, "aoti_torch_get_data_ptr");
  if (!exports.delete_tensor || !exports.data) return exports;
  for (std::size_t i = 0; i < kDTypeCount; ++i) {
    Ref name = Ref::steal(PyObject_Str(torch->dtypes[i].get()));  // "torch.float32"
    const char* text = name ? PyUnicode_AsUTF8(name.get()) : nullptr;
    std::int32_t (*number)() = nullptr;
    if (text) find(number, ("aoti_torch_dtype_" + std::string(text).substr(std::string_view("torch.").size())).c_str());
    if (!number) return exports;
    exports.scalar_types[i] = number();
  }
  exports.describe = table->describe;
  exports.take_over = table->take_over;
  exports.current_stream = table->current_stream;
  find(exports.empty_strided, "aoti_torch_empty_strided");
  find(exports.cuda_stream, "aoti_torch_get_current_cuda_stream");
  find(exports.numbered_stream, "aoti_torch_get_current_stream");
  find(exports.number_of_stream, "aoti_torch_stream_id");
  find(exports.handle_of_stream, "torch_stream_native_handle");
  find(exports.delete_stream, "aoti_torch_delete_stream");
  return exports;
}

}  // namespace

const TorchExports& torch_exports() {
  static const TorchExports exports = look_up();
  return exports;
}

}  // namespace tenon::python
