// Constants between a graph and DLPack tensors.
#pragma once

#include <memory>
#include <vector>

#include "core/abi/dlpack_types.h"
#include "core/ir/graph.h"
#include "tenon/host_services.h"

namespace tenon::detail {

/// A constant that travels to the host: it owns the bytes until the host calls the deleter.
struct OwnedConstant {
  DLManagedTensorVersioned tensor{};
  std::vector<std::int64_t> shape;
  std::shared_ptr<const void> owner;

  /// Gives a row-major tensor of the constant's type. The constant's shape must be constant.
  static DLManagedTensorVersioned* make(const ir::Constant& constant) {
    auto owned = std::make_unique<OwnedConstant>();
    for (const ir::Dim& size : constant.type.shape) owned->shape.push_back(size.constant());
    owned->owner = constant.owner;
    DLManagedTensorVersioned& managed = owned->tensor;
    managed.version = {1, 0};
    managed.flags = DLPACK_FLAG_BITMASK_READ_ONLY;
    managed.dl_tensor.data = const_cast<void*>(constant.data);
    managed.dl_tensor.device = ir::dlpack_device(constant.type.device);
    managed.dl_tensor.ndim = static_cast<std::int32_t>(owned->shape.size());
    managed.dl_tensor.dtype = dlpack_type(constant.type.dtype);
    managed.dl_tensor.shape = owned->shape.data();
    managed.deleter = [](DLManagedTensorVersioned* self) { delete static_cast<OwnedConstant*>(self->manager_ctx); };
    managed.manager_ctx = owned.get();
    return &owned.release()->tensor;
  }
};

/// Tensors on their way to the host: deletes those that were not handed over.
class OutgoingTensors {
 public:
  OutgoingTensors() = default;
  OutgoingTensors(const OutgoingTensors&) = delete;
  OutgoingTensors& operator=(const OutgoingTensors&) = delete;
  ~OutgoingTensors() {
    for (DLManagedTensorVersioned* tensor : tensors_)
      if (tensor->deleter) tensor->deleter(tensor);
  }

  void add(const ir::Constant& constant) {
    tensors_.reserve(tensors_.size() + 1);
    tensors_.push_back(OwnedConstant::make(constant));
  }
  DLManagedTensorVersioned* const* data() const { return tensors_.data(); }
  std::size_t size() const { return tensors_.size(); }
  /// Says that the host owns them now.
  void handed_over() { tensors_.clear(); }

 private:
  std::vector<DLManagedTensorVersioned*> tensors_;
};

}  // namespace tenon::detail
