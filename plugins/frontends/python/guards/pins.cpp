#include "python/guards/pins.h"

#include <cstring>

namespace tenon::python {
namespace {

template <class Pin>
std::uint32_t owner_of(const Pin& pin, const std::vector<Pin>& pins, const std::vector<std::uint32_t>& owners) {
  return owners[static_cast<std::size_t>(&pin - pins.data())];
}

}  // namespace

void Pins::pair(const void* place) {
  PairPin& pin = pairs_.emplace_back();
  pin.place = static_cast<const Pair*>(place);
  pin.expected = *pin.place;
  pair_owners_.push_back(owner_);
}

void Pins::block(const void* place) {
  Block& block = blocks_.emplace_back();
  block.place = static_cast<const Pair*>(place);
  std::memcpy(block.expected, place, sizeof block.expected);
  block_owners_.push_back(owner_);
}

void Pins::drop_since(Mark mark) {
  words_.resize(mark.words);
  word_owners_.resize(mark.words);
  pairs_.resize(mark.pairs);
  pair_owners_.resize(mark.pairs);
  blocks_.resize(mark.blocks);
  block_owners_.resize(mark.blocks);
}

std::uint32_t Pins::first_moved_beside_words() const noexcept {
  for (const PairPin& pin : pairs_) {
    const Pair difference = *pin.place ^ pin.expected;
    if ((difference[0] | difference[1]) != 0) [[unlikely]] return owner_of(pin, pairs_, pair_owners_);
  }
  for (const Block& block : blocks_) {
    Pair difference{};
    for (std::size_t i = 0; i < kBlockPairs; ++i) difference |= block.place[i] ^ block.expected[i];
    if ((difference[0] | difference[1]) != 0) [[unlikely]] return owner_of(block, blocks_, block_owners_);
  }
  return kHeld;
}

}  // namespace tenon::python
