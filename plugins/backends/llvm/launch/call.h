// One call of a program: where its values lie.
#pragma once

#include <cstdint>
#include <span>

#include "core/abi/plugin.h"
#include "places/placement.h"

namespace tenon::llvm_backend {

using codegen::Place;

/// The memory and sizes of one call.
struct Call {
  const TenonExecuteArgs& args;
  const std::size_t* offsets;  // of the workspace's slots
  std::span<const std::int64_t> symbols;

  /// Never null: an empty tensor's null pointer is replaced, as code may read ahead of a loop that then runs zero times.
  void* address(const Place& place) const;
};

}  // namespace tenon::llvm_backend
