#include "scratch.h"

#include <cstdlib>
#include <new>
#include <vector>

namespace tenon::llvm_backend {
namespace {

constexpr std::size_t kSlack = 4096;

struct Pieces : std::vector<Scratch::Piece> {
  ~Pieces() {
    for (Scratch::Piece& p : *this) std::free(p.memory);
  }
};

Pieces& free_pieces() {
  thread_local Pieces pieces;
  return pieces;
}

}  // namespace

Scratch::Scratch() {
  if (free_pieces().empty()) return;
  piece_ = free_pieces().back();
  free_pieces().pop_back();
}

Scratch::~Scratch() {
  if (piece_.memory) free_pieces().push_back(piece_);
}

void* Scratch::take(std::size_t bytes) {
  bytes = (bytes + kSlack + 63) & ~std::size_t{63};
  if (bytes > piece_.size) {
    std::free(piece_.memory);
    piece_ = {std::aligned_alloc(64, bytes), bytes};
    if (!piece_.memory) {
      piece_.size = 0;
      throw std::bad_alloc();
    }
  }
  return piece_.memory;
}

}  // namespace tenon::llvm_backend
