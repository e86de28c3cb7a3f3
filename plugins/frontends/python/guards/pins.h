// Words of memory that stand for guards: while each still is what it was, the guards need not be evaluated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tenon::python {

/// Words of other people's objects, compared in the order in which they were added. A word may be read only where those before it show that
/// its object is alive: the version of a dict shows it for the dict's values, the address in a slot for what the slot holds. Pairs and
/// blocks come after all words. Nothing is held.
class Pins {
 public:
  /// What is added from now on stands for the guards of this source.
  void set_owner(std::uint32_t source) { owner_ = source; }

  void word(const void* place, std::uint64_t expected) {
    words_.push_back({static_cast<Memory*>(place), expected});
    word_owners_.push_back(owner_);
  }
  void word(const void* place, const void* expected) { word(place, reinterpret_cast<std::uintptr_t>(expected)); }

  /// Two words next to each other, as they are now; then eight such pairs. They are compared after all words.
  void pair(const void* place);
  static constexpr std::size_t kBlockPairs = 8;
  void block(const void* place);

  /// How many words there are so far: words [from, to) are compared by themselves.
  std::size_t words() const { return words_.size(); }
  /// Drops what was added since there were this many words and blocks.
  struct Mark {
    std::size_t words, pairs, blocks;
  };
  Mark mark() const { return {words_.size(), pairs_.size(), blocks_.size()}; }
  void drop_since(Mark mark);

  static constexpr std::uint32_t kHeld = ~0u;
  /// The source whose word is the first that has changed, or kHeld.
  std::uint32_t first_moved(std::size_t from, std::size_t to) const noexcept {
    for (std::size_t at = from; at != to; ++at)
      if (*words_[at].place != words_[at].expected) [[unlikely]] return word_owners_[at];
    return kHeld;
  }
  /// The same for pairs and blocks.
  std::uint32_t first_moved_late() const noexcept { return pairs_.empty() && blocks_.empty() ? kHeld : first_moved_beside_words(); }

 private:
  std::uint32_t first_moved_beside_words() const noexcept;

  using Memory [[gnu::may_alias]] = const std::uint64_t;
  using Pair [[gnu::vector_size(16), gnu::may_alias, gnu::aligned(8)]] = std::uint64_t;  // what every processor compares at once
  struct Word {
    Memory* place;
    std::uint64_t expected;
  };
  struct PairPin {
    const Pair* place;
    Pair expected;
  };
  struct Block {
    const Pair* place;
    Pair expected[kBlockPairs];
  };
  std::vector<Word> words_;
  std::vector<PairPin> pairs_;
  std::vector<Block> blocks_;
  std::vector<std::uint32_t> word_owners_, pair_owners_, block_owners_;
  std::uint32_t owner_ = 0;
};

}  // namespace tenon::python
