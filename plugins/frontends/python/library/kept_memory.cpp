#include "python/library/kept_memory.h"

namespace tenon::python {

namespace {

KeptMemory kept(void* tensor, DType dtype, void* counts, bool is_leaf) {
  KeptMemory made;
  made.storage = TorchRef::borrow(layout::storage(tensor));
  made.counts = TorchRef::borrow(counts);
  made.is_leaf = is_leaf;
  made.offset = layout::storage_offset(tensor) * static_cast<std::int64_t>(size_of(dtype));
  made.version = made.version_now();
  return made;
}

void* counter_of(void* tensor) { return layout::field<void*>(tensor, 40); }

}  // namespace

KeptMemory memory_of(void* tensor, DType dtype) { return kept(tensor, dtype, counter_of(tensor), false); }

KeptMemory memory_of_input(void* tensor, DType dtype) {
  void* meta = layout::autograd_meta(tensor);
  const bool is_leaf = meta && layout::field<void*>(meta, 48) == nullptr && layout::requires_grad(tensor);
  return is_leaf ? kept(tensor, dtype, tensor, true) : memory_of(tensor, dtype);
}

std::uint32_t KeptMemory::version_now() const {
  void* counter = is_leaf ? counter_of(counts.get()) : counts.get();
  return counter ? layout::field<std::atomic<std::uint32_t>>(counter, 16).load() : 0;
}

void* KeptMemory::replacement(DType dtype) const {
  if (!is_leaf) return nullptr;
  void* now = layout::data(counts.get(), size_of(dtype));
  return layout::storage(counts.get()) == storage.get() && now == data() ? nullptr : now;
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
