#include "python/call/written_inputs.h"

#include <algorithm>

#include "python/call/present_places.h"

namespace tenon::python {

bool WrittenInputs::stand_apart(std::span<const TensorSpec> specs, const ObjectOf& object_of) noexcept {
  if (std::ranges::any_of(written_, [&](std::uint32_t input) { return is_copied_on_write(specs[input], object_of(input)); })) return false;
  if (!have_moved(specs, object_of)) return true;
  if (!ranges_touch(specs, object_of) || !any_shares(specs, object_of)) return true;
  first_.clear();
  return false;
}

/// Notes where the inputs are now. What varies in size may reach further than the last time from the same first element.
bool WrittenInputs::have_moved(std::span<const TensorSpec> specs, const ObjectOf& object_of) {
  bool moved = first_.size() != specs.size();
  first_.resize(specs.size(), nullptr);
  for (std::uint32_t i = 0; i < specs.size(); ++i) {
    if (specs[i].kind == TensorKind::scalar) continue;
    const void* const first = data_of(specs[i], object_of(i), nullptr);
    moved = moved || first != first_[i] || specs[i].varies();
    first_[i] = first;
  }
  return moved;
}

/// Whether the bytes between first and last element of a written input reach into those of another one; in the order of n log n.
bool WrittenInputs::ranges_touch(std::span<const TensorSpec> specs, const ObjectOf& object_of) const {
  struct Range {
    ByteRange bytes;
    bool written;
  };
  std::vector<bool> is_written(specs.size(), false);
  for (std::uint32_t input : written_) is_written[input] = true;
  std::vector<Range> ranges;
  ranges.reserve(specs.size());
  for (std::uint32_t i = 0; i < specs.size(); ++i) {
    if (specs[i].kind == TensorKind::scalar) continue;
    const auto bytes = PresentPlaces(specs[i], object_of(i)).range();
    if (!bytes) return true;
    if (bytes->low < bytes->high) ranges.push_back({*bytes, is_written[i]});
  }
  std::ranges::sort(ranges, {}, [](const Range& r) { return r.bytes.low; });
  const char *reached = nullptr, *reached_by_written = nullptr;
  for (const Range& r : ranges) {
    if (r.bytes.low < (r.written ? reached : reached_by_written)) return true;
    reached = std::max(reached, r.bytes.high);
    if (r.written) reached_by_written = std::max(reached_by_written, r.bytes.high);
  }
  return false;
}

bool WrittenInputs::any_shares(std::span<const TensorSpec> specs, const ObjectOf& object_of) const {
  for (std::uint32_t input : written_) {
    const PresentPlaces written(specs[input], object_of(input));
    for (std::uint32_t other = 0; other < specs.size(); ++other)
      if (other != input && specs[other].kind != TensorKind::scalar && written.may_share_with(PresentPlaces(specs[other], object_of(other)))) return true;
  }
  return false;
}

}  // namespace tenon::python
