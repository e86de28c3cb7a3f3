#include "call.h"

#include <array>
#include <cstddef>

namespace tenon::llvm_backend {

namespace {

alignas(64) std::array<std::byte, 4096> empty_tensor{};

}  // namespace

void* Call::address(const Place& place) const {
  void* found = nullptr;
  switch (place.kind) {
    case Place::Kind::input: found = const_cast<void*>(args.inputs[place.index]); break;
    case Place::Kind::output: found = args.outputs[place.index]; break;
    case Place::Kind::workspace: return static_cast<std::byte*>(args.workspace) + offsets[place.index] + place.start;
    case Place::Kind::constant: found = const_cast<void*>(place.address); break;
    case Place::Kind::local:
    case Place::Kind::none: break;
  }
  return found ? static_cast<std::byte*>(found) + place.start : empty_tensor.data();
}

}  // namespace tenon::llvm_backend
