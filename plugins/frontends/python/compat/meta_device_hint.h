// torch's meta kernels in Python take a tensor on the meta device for one of CUDA, and give the strides that CUDA would give.
#pragma once

#include "python/objects/ref.h"

namespace tenon::python {

/// While it lives, meta kernels give the strides of the CPU.
///
/// Trigger: `torch.linalg.svd` of a meta tensor (row-major Vh; on the CPU it is column-major), `torch.fft`, `Tensor.median`, `embedding_bag`.
/// Cause: `device_hint` of torch/_meta_registrations.py "defaults to cuda". Versions: 2.13 and before. Delete when a meta tensor can say
/// for which device it stands. Does nothing where torch has no such function. Other threads that use meta tensors meanwhile see it too.
class CpuMetaKernels {
 public:
  CpuMetaKernels();
  ~CpuMetaKernels();
  CpuMetaKernels(const CpuMetaKernels&) = delete;

 private:
  Ref module_, original_;
};

}  // namespace tenon::python
