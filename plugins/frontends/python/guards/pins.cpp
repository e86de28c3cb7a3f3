#include "python/guards/pins.h"

#include <cstring>

namespace tenon::python {

void Pins::block(const void* place) {
  Block& block = blocks_.emplace_back();
  block.place = static_cast<Memory*>(place);
  std::memcpy(block.expected, place, sizeof block.expected);
  block_owners_.push_back(owner_);
}

void Pins::drop_since(Mark mark) {
  words_.resize(mark.words);
  word_owners_.resize(mark.words);
  blocks_.resize(mark.blocks);
  block_owners_.resize(mark.blocks);
}

std::uint32_t Pins::first_moved_block() const noexcept {
  for (const Block& block : blocks_) {
    std::uint64_t difference = 0;
    for (std::size_t i = 0; i < kBlockWords; ++i) difference |= block.place[i] ^ block.expected[i];
    if (difference != 0) [[unlikely]] return block_owners_[static_cast<std::size_t>(&block - blocks_.data())];
  }
  return kHeld;
}

}  // namespace tenon::python
