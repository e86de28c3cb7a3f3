// Memory for the length of one step, kept by the thread for its next one.
#pragma once

#include <cstddef>

namespace tenon::llvm_backend {

/// A step that starts while another of the same thread waits for its parallel loop takes another piece.
class Scratch {
 public:
  Scratch();
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  /// 64-byte aligned, with readable bytes after the end for prefetches. What was taken before is gone.
  void* take(std::size_t bytes);

  struct Piece {
    void* memory = nullptr;
    std::size_t size = 0;
  };

 private:
  Piece piece_;
};

}  // namespace tenon::llvm_backend
