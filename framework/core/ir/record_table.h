// The hash table of the buffer writer: what occurs often is stored once, in order of first use.
#pragma once

#include <cstdint>
#include <vector>

namespace tenon::ir {

/// Maps contents to ids, where the contents live elsewhere. Open addressing, at most half full.
class RecordTable {
 public:
  explicit RecordTable(std::size_t expected = 32) {
    std::size_t size = 64;
    while (size < expected * 2) size *= 2;
    slots_.resize(size);
  }

  /// The id stored before under `hash` for which `equals(id)` holds, else the result of `make()`, stored.
  template <class Equals, class Make>
  std::uint32_t find_or_make(std::uint64_t hash, Equals&& equals, Make&& make) {
    std::size_t i = hash & (slots_.size() - 1);
    for (; slots_[i].used; i = (i + 1) & (slots_.size() - 1))
      if (slots_[i].hash == hash && equals(slots_[i].id)) return slots_[i].id;
    slots_[i] = {hash, make(), true};
    const std::uint32_t id = slots_[i].id;
    if (++count_ * 2 > slots_.size()) grow();
    return id;
  }

 private:
  struct Slot {
    std::uint64_t hash = 0;
    std::uint32_t id = 0;
    bool used = false;
  };

  void grow() {
    std::vector<Slot> old(slots_.size() * 2);
    old.swap(slots_);
    for (const Slot& s : old) {
      if (!s.used) continue;
      std::size_t i = s.hash & (slots_.size() - 1);
      while (slots_[i].used) i = (i + 1) & (slots_.size() - 1);
      slots_[i] = s;
    }
  }

  std::vector<Slot> slots_;
  std::size_t count_ = 0;
};

}  // namespace tenon::ir
