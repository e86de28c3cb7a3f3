// Where the memory of a value is.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/abi/dlpack.h"

namespace tenon::ir {

/// A device by DLPack's numbers: of what kind it is (a DLDeviceType), and which one of that kind. The default is the host's memory.
struct Device {
  static constexpr std::uint8_t kHost = 1;

  std::uint8_t kind = kHost;
  std::int32_t index = 0;

  /// Whether the host reads and writes its memory as its own.
  bool is_host() const { return kind == kHost; }
  friend bool operator==(const Device&, const Device&) = default;
};

/// As DLPack's, and from it; of kinds beyond 255, which no graph can name, only the last byte is left.
constexpr DLDevice dlpack_device(Device device) { return {static_cast<DLDeviceType>(device.kind), device.index}; }
constexpr Device device_of(DLDevice device) { return {static_cast<std::uint8_t>(device.device_type), device.device_id}; }

/// A kind of device as graphs name it: "cpu", or "device9" by DLPack's number. The words that people have for a kind are whose who brings it
/// (TenonDeviceProperties::kind): a graph means the same wherever it is read.
std::string device_kind_text(std::uint8_t kind);
/// The number of a kind; nothing where the word names none.
std::optional<std::uint8_t> device_kind_named(std::string_view word);
/// "device9:0".
std::string device_text(Device device);
/// The device that a text names; the first of its kind where it has no index. Throws (invalid_argument) where it is none.
Device device_named(std::string_view text);
/// "'word' is no device; cpu is, …": what is wrong with a word that names none.
std::string no_device(std::string_view word);

}  // namespace tenon::ir
