// A minimal backend written against the C contract alone; each broken plugin is this with one thing wrong.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/abi/plugin.h"

#define EXPORTED extern "C" __attribute__((visibility("default")))

namespace parts {

inline DLDevice cpu = {kDLCPU, 0};

inline std::int32_t create(const TenonHost*, const char*, void** self) {
  *self = nullptr;
  return TENON_OK;
}
inline void destroy(void*) {}
inline std::int32_t claim(void*, const TenonGraph*, const TenonClaims*) { return TENON_OK; }
inline std::int32_t compile(void*, const TenonGraph*, const char*, TenonArtefact*) { return TENON_UNSUPPORTED; }
inline std::int32_t execute(void*, const TenonExecuteArgs*) { return TENON_UNSUPPORTED; }
inline void release(void*) {}

inline TenonBackend backend = {sizeof(TenonBackend), TENON_DYNAMIC_SHAPES, &cpu, 1, create, destroy, claim, compile, nullptr, execute, release, nullptr, nullptr, nullptr};

inline TenonPlugin plugin(const char* name) {
  return {sizeof(TenonPlugin), TENON_PLUGIN_MAGIC, TENON_ABI_NEWEST, TENON_KIND_BACKEND, name, "1.0", "test", "", "a test", &backend, nullptr, nullptr};
}

}  // namespace parts

// The entry of a plugin whose descriptor is `parts::plugin(name)`, changed by the statement given.
#define ENTRY(name, ...)                                             \
  EXPORTED const TenonPlugin* tenon_plugin_entry(TenonOffer*) {      \
    static TenonPlugin plugin = parts::plugin(name);                 \
    __VA_ARGS__;                                                     \
    return &plugin;                                                  \
  }
