// What the host does for a plugin, as C++: logging, memory, the thread pool, constants, the cache. And how a plugin says that it failed.
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/abi/plugin.h"
#include "core/abi/struct_size.h"

namespace tenon {

/// Says that the current call fails: the host reports code, node and text with the plugin's name. Any other exception counts as
/// TENON_PLUGIN_FAILED with its `what()`.
class Failure : public std::runtime_error {
 public:
  Failure(TenonCode code, const std::string& text, std::uint32_t node = TENON_NO_NODE)
      : std::runtime_error(text), code_(code), node_(node) {}

  TenonCode code() const { return code_; }
  std::uint32_t node() const { return node_; }

 private:
  TenonCode code_;
  std::uint32_t node_;
};

/// The host's services for a plugin; cheap to copy, valid for the life of the process, usable on every thread.
class HostServices {
 public:
  explicit HostServices(const TenonHost* host) : host_(host) {}

  /// Logs a text. `category` names the log of TENON_LOGS that it belongs to ("kernel_code", "fusion"); null is "plugins".
  void log(TenonLevel level, const std::string& text, const char* category = nullptr) const {
    host_->log(host_->self, level, category, text.c_str());
  }
  /// Says whether anyone reads that log, so that a plugin can skip making a text that is dear.
  bool log_enabled(const char* category) const { return host_->log_enabled(host_->self, category) != 0; }

  /// 64-byte aligned memory; throws std::bad_alloc when there is none. Give it back with `deallocate`.
  void* allocate(std::size_t bytes) const {
    void* memory = host_->allocate(host_->self, bytes);
    if (!memory) throw std::bad_alloc();
    return memory;
  }
  void deallocate(void* memory) const { host_->deallocate(host_->self, memory); }

  /// Runs body(first, last) over disjoint parts of [begin, end) of at least `grain` iterations each, on the host's threads and the
  /// calling one, and returns when all have run. When `body` throws, the first exception comes out here after the others have run.
  template <class Body>
  void parallel_for(std::int64_t begin, std::int64_t end, std::int64_t grain, Body&& body) const;
  int thread_count() const { return host_->thread_count(host_->self); }

  /// True when nobody waits any longer for the current compile.
  bool cancelled() const { return host_->cancelled(host_->self) != 0; }
  /// Says how far the current compile is: so many pieces (kernels) of all, for people who wait.
  void progress(std::size_t done, std::size_t total) const {
    if (TENON_COVERS(host_, progress) && host_->progress) host_->progress(host_->self, static_cast<std::int64_t>(done), static_cast<std::int64_t>(total));
  }
  /// The bytes of constant `index` of the graph being compiled, for a backend that bakes them into its code; makes the artefact's
  /// cache key depend on them. Throws outside of compile.
  const DLTensor& read_constant(std::uint32_t index) const {
    const DLTensor* tensor = host_->read_constant(host_->self, index);
    if (!tensor) throw Failure(TENON_INVALID_ARGUMENT, "constant " + std::to_string(index) + " cannot be read here: only compile may, and only constants of its graph");
    return *tensor;
  }

  /// Finds bytes that an earlier `cache_put`, maybe of another process, stored under `key`.
  std::optional<std::string> cache_get(std::string_view key) const {
    std::optional<std::string> found;
    auto sink = [](void* context, TenonBytes value) {
      static_cast<std::optional<std::string>*>(context)->emplace(reinterpret_cast<const char*>(value.data), value.size);
    };
    host_->cache_get(host_->self, bytes_of(key), sink, &found);
    return found;
  }
  /// Stores bytes under `key`; a store that is full or read-only drops them.
  void cache_put(std::string_view key, std::string_view value) const { host_->cache_put(host_->self, bytes_of(key), bytes_of(value)); }

  /// An optional extension by name, or null.
  const void* feature(const char* name) const { return host_->feature ? host_->feature(host_->self, name) : nullptr; }

  const TenonHost* table() const { return host_; }

 private:
  static TenonBytes bytes_of(std::string_view text) { return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()}; }

  const TenonHost* host_;
};

}  // namespace tenon

#include "tenon/parallel_for.h"
