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
using CUgraph = struct CUgraph_st*;
using CUgraphNode = struct CUgraphNode_st*;
using CUgraphExec = struct CUgraphExec_st*;

/// CUDA_KERNEL_NODE_PARAMS_v2.
struct CUkernelNode {
  CUfunction function = nullptr;
  unsigned blocks[3] = {1, 1, 1}, threads[3] = {1, 1, 1};
  unsigned shared_bytes = 0;
  void** parameters = nullptr;
  void** extra = nullptr;
  void* kernel = nullptr;      // instead of `function`
  CUcontext context = nullptr; // null: the current one
};
/// CUgraphEdgeData.
struct CUgraphEdge {
  unsigned char from_port = 0, to_port = 0, type = 0, reserved[5] = {};
};
/// A kernel may start when all blocks of the one before have said that they let others start, or have ended: it waits itself for what that
/// one writes (CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC, CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC).
inline constexpr CUgraphEdge kProgrammatic{.from_port = 1, .type = 1};

inline constexpr CUresult kSuccess = 0, kOutOfMemory = 2, kNotReady = 600;
/// CUdevice_attribute.
inline constexpr int kMajor = 75, kMinor = 76, kHasMemoryPools = 115;
/// CUmemPool_attribute: bytes that a pool keeps when a stream is waited for.
inline constexpr int kReleaseThreshold = 4;
/// CUjit_option: where the compiler's words go, and how many bytes there are for them.
inline constexpr int kErrorLog = 5, kErrorLogBytes = 6;
/// CUfunction_attribute: shared memory that launches may give a block. So much they may without it.
inline constexpr int kMostSharedBytes = 8;
inline constexpr unsigned kSharedWithoutAsking = 48 * 1024;
inline constexpr unsigned kWithTiming = 0;          // CU_EVENT_DEFAULT
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
  F(event_elapsed, cuEventElapsedTime, float*, CUevent, CUevent)                                                                    \
  F(module_load, cuModuleLoadDataEx, CUmodule*, const void*, unsigned, int*, void**)                                                \
  F(module_unload, cuModuleUnload, CUmodule)                                                                                        \
  F(module_function, cuModuleGetFunction, CUfunction*, CUmodule, const char*)                                                       \
  F(function_set, cuFuncSetAttribute, CUfunction, int, int)                                                                         \
  F(stream_capturing, cuStreamIsCapturing, CUstream, int*)                                                                          \
  F(context_current, cuCtxGetCurrent, CUcontext*)                                                                                   \
  F(graph_create, cuGraphCreate, CUgraph*, unsigned)                                                                                \
  F(graph_destroy, cuGraphDestroy, CUgraph)                                                                                         \
  F(graph_add, cuGraphAddKernelNode_v2, CUgraphNode*, CUgraph, const CUgraphNode*, std::size_t, const CUkernelNode*)                \
  F(graph_event, cuGraphAddEventRecordNode, CUgraphNode*, CUgraph, const CUgraphNode*, std::size_t, CUevent)                        \
  F(graph_instantiate, cuGraphInstantiateWithFlags, CUgraphExec*, CUgraph, unsigned long long)                                      \
  F(graph_set, cuGraphExecKernelNodeSetParams_v2, CUgraphExec, CUgraphNode, const CUkernelNode*)                                    \
  F(graph_launch, cuGraphLaunch, CUgraphExec, CUstream)                                                                             \
  F(graph_release, cuGraphExecDestroy, CUgraphExec)                                                                                 \
  F(launch, cuLaunchKernel, CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, void**, void**)

/// The same for those that an older driver may lack.
#define TENON_CUDA_NEWER_FUNCTIONS(F) \
  F(graph_connect, cuGraphAddDependencies_v2, CUgraph, const CUgraphNode*, const CUgraphNode*, const CUgraphEdge*, std::size_t) /* CUDA 12.3 */

}  // namespace tenon::cuda
