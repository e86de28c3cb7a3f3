#include "core/ir/device.h"

#include <charconv>

#include "core/base/error.h"

namespace tenon::ir {
namespace {

constexpr std::string_view kHostName = "cpu", kNumbered = "device";

template <class T>
std::optional<T> whole_number(std::string_view text) {
  T number{};
  const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (wrong != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace

std::string device_kind_text(std::uint8_t kind) {
  return kind == Device::kHost ? std::string(kHostName) : fmt::format("{}{}", kNumbered, kind);
}

std::optional<std::uint8_t> device_kind_named(std::string_view word) {
  if (word == kHostName) return Device::kHost;
  if (!word.starts_with(kNumbered)) return std::nullopt;
  const auto number = whole_number<std::uint8_t>(word.substr(kNumbered.size()));
  return number && *number > 0 ? number : std::nullopt;
}

std::string device_text(Device device) { return fmt::format("{}:{}", device_kind_text(device.kind), device.index); }

Device device_named(std::string_view text) {
  const std::size_t colon = text.find(':');
  const std::string_view word = text.substr(0, colon);
  const auto kind = device_kind_named(word);
  if (!kind) throw Exception(Code::invalid_argument, no_device(word));
  const auto index = colon == std::string_view::npos ? std::optional<std::int32_t>(0) : whole_number<std::int32_t>(text.substr(colon + 1));
  if (!index || *index < 0) throw Exception(error(Code::invalid_argument, "'{}' has no number of a device", text));
  return {*kind, *index};
}

std::string no_device(std::string_view word) {
  return fmt::format("'{}' is no device; {} is, and {}1 to {}255 by DLPack's numbers are", word, kHostName, kNumbered, kNumbered);
}

}  // namespace tenon::ir
