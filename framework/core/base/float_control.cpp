#include "core/base/float_control.h"

namespace tenon {

std::string FloatControl::difference(const FloatControl& other) const {
  struct Part {
    std::uint64_t vector_bits;
    std::uint16_t x87_bits;
    const char* name;
  };
#if defined(__x86_64__)
  // Intel SDM volume 1, sections 10.2.3 (MXCSR) and 8.1.5 (x87 control word).
  constexpr Part parts[] = {{0x6000, 0x0c00, "the rounding mode"},
                            {0x8040, 0, "flushing of subnormal numbers"},
                            {0x1f80, 0x003f, "which floating-point exceptions trap"},
                            {0, 0x0300, "the precision of the x87"}};
#elif defined(__aarch64__)
  // Arm ARM, FPCR: RMode, FZ and FZ16, the trap enables.
  constexpr Part parts[] = {{0x00c00000, 0, "the rounding mode"}, {0x01080000, 0, "flushing of subnormal numbers"}, {0x00009f00, 0, "which floating-point exceptions trap"}};
#else
  constexpr Part parts[] = {{~std::uint64_t{0}, 0, "the rounding mode"}};
#endif
  std::string words;
  for (const Part& part : parts)
    if (((vector ^ other.vector) & part.vector_bits) || ((x87 ^ other.x87) & part.x87_bits)) words += (words.empty() ? "" : " and ") + std::string(part.name);
  return words.empty() ? "floating-point control bits" : words;
}

}  // namespace tenon
