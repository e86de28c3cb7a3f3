// The entry of the plugin "cuda".
#include "backend.h"

TENON_BACKEND(tenon::cuda::CudaBackend, "cuda", "0.1.0", "Compiles fused kernels for NVIDIA's GPUs, as PTX for the driver")
