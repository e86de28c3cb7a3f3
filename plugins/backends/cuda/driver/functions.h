// The CUDA Driver API as far as this backend calls it: its own declarations, since nothing of CUDA is there when it is built.
// NVIDIA, CUDA Driver API reference manual: https://docs.nvidia.com/cuda/cuda-driver-api/
#pragma once

#include <cstddef>
#include <cstdint>

namespace tenon::cuda {

using CUresult = int;
using CUdevice = int;
using CUdeviceptr = std::uint64_t;
using CUcontext = struct CUctx_st*;
using CUmodule = struct CUmod_st*;
using CUfunction = struct CUfunc_st*;
using CUstream = struct CUstream_st*;
using CUevent = struct CUevent_st*;
using CUmemoryPool = struct CUmemPoolHandle_st*;

inline constexpr CUresult kSuccess = 0, kOutOfMemory = 2, kNotReady = 600;
/// CUdevice_attribute.
inline constexpr int kMajor = 75, kMinor = 76, kHasMemoryPools = 115;
/// CUmemPool_attribute: bytes that a pool keeps when a stream is waited for.
inline constexpr int kReleaseThreshold = 4;
/// CUjit_option: where the compiler's words go, and how many bytes there are for them.
inline constexpr int kErrorLog = 5, kErrorLogBytes = 6;
inline constexpr unsigned kWithoutTiming = 2;       // CU_EVENT_DISABLE_TIMING
inline constexpr unsigned kBesideDefaultStream = 1; // CU_STREAM_NON_BLOCKING

/// Calls F(name in the table, name in the library, parameter types).
#define TENON_CUDA_FUNCTIONS(F)                                                                                                     \
  F(init, cuInit, unsigned)                                                                                                         \
  F(driver_version, cuDriverGetVersion, int*)                                                                                       \
  F(error_name, cuGetErrorName, CUresult, const char**)                                                                             \
  F(error_string, cuGetErrorString, CUresult, const char**)                                                                         \
  F(device_count, cuDeviceGetCount, int*)                                                                                           \
  F(device, cuDeviceGet, CUdevice*, int)                                                                                            \
  F(device_name, cuDeviceGetName, char*, int, CUdevice)                                                                             \
  F(device_memory, cuDeviceTotalMem_v2, std::size_t*, CUdevice)                                                                     \
  F(device_attribute, cuDeviceGetAttribute, int*, int, CUdevice)                                                                    \
  F(device_pool, cuDeviceGetDefaultMemPool, CUmemoryPool*, CUdevice)                                                                \
  F(pool_set, cuMemPoolSetAttribute, CUmemoryPool, int, void*)                                                                      \
  F(context_retain, cuDevicePrimaryCtxRetain, CUcontext*, CUdevice)                                                                 \
  F(context_push, cuCtxPushCurrent_v2, CUcontext)                                                                                   \
  F(context_pop, cuCtxPopCurrent_v2, CUcontext*)                                                                                    \
  F(context_synchronise, cuCtxSynchronize)                                                                                          \
  F(allocate, cuMemAllocAsync, CUdeviceptr*, std::size_t, CUstream)                                                                 \
  F(release, cuMemFreeAsync, CUdeviceptr, CUstream)                                                                                 \
  F(copy_to_device, cuMemcpyHtoDAsync_v2, CUdeviceptr, const void*, std::size_t, CUstream)                                          \
  F(copy_to_host, cuMemcpyDtoHAsync_v2, void*, CUdeviceptr, std::size_t, CUstream)                                                  \
  F(copy_on_device, cuMemcpyDtoDAsync_v2, CUdeviceptr, CUdeviceptr, std::size_t, CUstream)                                          \
  F(copy_to_peer, cuMemcpyPeerAsync, CUdeviceptr, CUcontext, CUdeviceptr, CUcontext, std::size_t, CUstream)                         \
  F(fill_8, cuMemsetD8Async, CUdeviceptr, unsigned char, std::size_t, CUstream)                                                     \
  F(fill_16, cuMemsetD16Async, CUdeviceptr, unsigned short, std::size_t, CUstream)                                                  \
  F(fill_32, cuMemsetD32Async, CUdeviceptr, unsigned, std::size_t, CUstream)                                                        \
  F(stream_create, cuStreamCreate, CUstream*, unsigned)                                                                             \
  F(stream_destroy, cuStreamDestroy_v2, CUstream)                                                                                   \
  F(stream_synchronise, cuStreamSynchronize, CUstream)                                                                              \
  F(stream_wait, cuStreamWaitEvent, CUstream, CUevent, unsigned)                                                                    \
  F(event_create, cuEventCreate, CUevent*, unsigned)                                                                                \
  F(event_record, cuEventRecord, CUevent, CUstream)                                                                                 \
  F(event_query, cuEventQuery, CUevent)                                                                                             \
  F(event_synchronise, cuEventSynchronize, CUevent)                                                                                 \
  F(event_destroy, cuEventDestroy_v2, CUevent)                                                                                      \
  F(module_load, cuModuleLoadDataEx, CUmodule*, const void*, unsigned, int*, void**)                                                \
  F(module_unload, cuModuleUnload, CUmodule)                                                                                        \
  F(module_function, cuModuleGetFunction, CUfunction*, CUmodule, const char*)                                                       \
  F(launch, cuLaunchKernel, CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, void**, void**)

}  // namespace tenon::cuda
