#include "python/library/kept_memory.h"

namespace tenon::python {

KeptMemory memory_of(void* tensor, DType dtype) {
  KeptMemory kept{TorchRef::borrow(layout::storage(tensor)), TorchRef::borrow(layout::field<void*>(tensor, 40)),
                  layout::storage_offset(tensor) * static_cast<std::int64_t>(size_of(dtype)), 0};
  kept.version = kept.version_now();
  return kept;
}

const char* tensor_type_name(DType dtype) {
  switch (dtype) {
    case DType::b8: return "torch.BoolTensor";
    case DType::u8: return "torch.ByteTensor";
    case DType::i8: return "torch.CharTensor";
    case DType::i16: return "torch.ShortTensor";
    case DType::i32: return "torch.IntTensor";
    case DType::i64: return "torch.LongTensor";
    case DType::f16: return "torch.HalfTensor";
    case DType::bf16: return "torch.BFloat16Tensor";
    case DType::f32: return "torch.FloatTensor";
    case DType::f64: return "torch.DoubleTensor";
    case DType::c64: return "torch.ComplexFloatTensor";
    case DType::c128: return "torch.ComplexDoubleTensor";
  }
  return "torch.Tensor";
}

}  // namespace tenon::python
