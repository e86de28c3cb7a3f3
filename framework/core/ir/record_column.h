// The growing arrays of the buffer writer: room is made once a node, so that storing a record is a store.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <type_traits>

namespace tenon::ir {

template <class Record>
class RecordColumn {
  static_assert(std::is_trivially_copyable_v<Record>);

 public:
  /// Room for that many records more. Invalidates references.
  void make_room(std::size_t more) {
    if (capacity_ - size_ < more) grow(size_ + more);
  }
  /// Appends a record, for which there must be room.
  void put(const Record& record) { records_[size_++] = record; }
  /// Appends that many records, to be written by the caller; there must be room.
  Record* extend(std::size_t count) {
    Record* first = records_.get() + size_;
    size_ += count;
    return first;
  }

  const Record& operator[](std::size_t i) const { return records_[i]; }
  const Record* data() const { return records_.get(); }
  std::size_t size() const { return size_; }

 private:
  [[gnu::noinline]] void grow(std::size_t least) {
    const std::size_t capacity = std::max({least, capacity_ * 2, std::size_t{16}});
    auto records = std::make_unique_for_overwrite<Record[]>(capacity);
    if (size_) std::memcpy(records.get(), records_.get(), size_ * sizeof(Record));
    records_ = std::move(records);
    capacity_ = capacity;
  }

  std::unique_ptr<Record[]> records_;
  std::size_t size_ = 0, capacity_ = 0;
};

}  // namespace tenon::ir
