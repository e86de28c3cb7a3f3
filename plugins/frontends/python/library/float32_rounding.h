// Whether torch's libraries may round operands of float32 to tf32 on cards.
#pragma once

namespace tenon::python {

struct Float32Rounding {
  bool products = false;      // of matrices
  bool convolutions = false;
  friend bool operator==(const Float32Rounding&, const Float32Rounding&) = default;
};

/// As torch's flags say now: `torch.backends.cuda.matmul` and `set_float32_matmul_precision` of products, `torch.backends.cudnn` of convolutions,
/// `torch.backends.fp32_precision` where those say nothing. All false without torch. Needs no GIL; some tens of ns.
Float32Rounding float32_rounding() noexcept;

}  // namespace tenon::python
