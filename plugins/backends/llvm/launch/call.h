// One call of a program: where its values lie.
#pragma once

#include <cstdint>
#include <span>

#include "core/abi/plugin.h"

namespace tenon::llvm_backend {

/// Where a value lies during a call.
struct Place {
  enum class Kind : std::uint8_t { none, input, output, workspace, constant, panel, row, block } kind = Kind::none;
  std::uint32_t index = 0;  // input, output: position; workspace: slot
  const void* address = nullptr;
  std::int64_t start = 0;  // bytes of the value before the place
};

/// The memory and sizes of one call.
struct Call {
  const TenonExecuteArgs& args;
  const std::size_t* offsets;  // of the workspace's slots
  std::span<const std::int64_t> symbols;

  /// Never null: an empty tensor's null pointer is replaced, as code may read ahead of a loop that then runs zero times.
  void* address(const Place& place) const;
};

}  // namespace tenon::llvm_backend
