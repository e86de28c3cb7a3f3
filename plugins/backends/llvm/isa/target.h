// What the lowering needs to know of the machine.
#pragma once

#include <string>

namespace tenon::llvm_backend {

struct Target {
  std::string cpu;       // LLVM's name
  std::string features;  // LLVM's feature string
  unsigned vector_bytes = 16;
  bool has_fma = false;
  bool has_f16c = false;
  bool has_bf16_pairs = false;    // multiplies and adds pairs of bfloat16 in float32 (AVX512_BF16)
  bool has_bf16_tiles = false;    // multiplies tiles of them (AMX), and this process may
  bool vector_functions = false;  // glibc's libmvec is loaded
  /// Comparisons of NaNs set no floating-point flag: somebody reads the flags afterwards.
  bool quiet_comparisons = false;
  /// Bytes written by one kernel from which stores go around the cache.
  double streaming_bytes = 64e6;

  /// Lanes of float32 in a vector register.
  unsigned lanes() const { return vector_bytes / 4; }
  /// Masks are in registers of their own (AVX-512).
  bool has_mask_registers() const { return vector_bytes == 64; }
};

}  // namespace tenon::llvm_backend
