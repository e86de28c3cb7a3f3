#include "host/plugins/isolation/message_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "core/base/error.h"

namespace tenon::host {
namespace {

// The file: the size of the JSON text in 8 bytes, the text, then the parts; the text has the sizes of the parts under "sizes".
constexpr std::size_t kPartAlignment = 64;

std::size_t part_aligned(std::size_t bytes) { return (bytes + kPartAlignment - 1) / kPartAlignment * kPartAlignment; }

void write_at(int fd, std::string_view bytes, std::size_t offset) {
  while (!bytes.empty()) {
    const ssize_t n = ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) throw Exception(Code::out_of_memory, fmt::format("a graph cannot be handed to the helper process: {}", std::strerror(errno)));
    bytes.remove_prefix(static_cast<std::size_t>(n));
    offset += static_cast<std::size_t>(n);
  }
}

[[noreturn]] void no_message() { throw Exception(Code::malformed, "what the helper process left is no message"); }

std::shared_ptr<char> read_bytes(int fd, std::size_t size) {
  std::shared_ptr<char> bytes(static_cast<char*>(std::aligned_alloc(kPartAlignment, part_aligned(size + 1))), std::free);
  if (!bytes) throw Exception(Code::out_of_memory, fmt::format("no memory for a message of {} bytes", size));
  for (std::size_t at = 0; at < size;) {
    const ssize_t n = ::pread(fd, bytes.get() + at, size - at, static_cast<off_t>(at));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) no_message();
    at += static_cast<std::size_t>(n);
  }
  return bytes;
}

}  // namespace

Descriptor anonymous_file() {
  Descriptor file(::memfd_create("tenon", MFD_CLOEXEC));
  if (!file) throw Exception(Code::out_of_memory, fmt::format("no file of memory can be made: {}", std::strerror(errno)));
  return file;
}

void write_message(int fd, const nlohmann::json& head, std::span<const std::string_view> parts) {
  nlohmann::json sizes = nlohmann::json::array();
  for (std::string_view part : parts) sizes.push_back(part.size());
  const nlohmann::json whole = {{"head", head}, {"sizes", sizes}};
  const std::string text = whole.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  const std::uint64_t size = text.size();
  if (::ftruncate(fd, 0) != 0) throw Exception(Code::out_of_memory, "a message cannot be written");
  write_at(fd, {reinterpret_cast<const char*>(&size), sizeof size}, 0);
  write_at(fd, text, sizeof size);
  std::size_t offset = part_aligned(sizeof size + text.size());
  for (std::string_view part : parts) {
    write_at(fd, part, offset);
    offset = part_aligned(offset + part.size());
  }
}

Message read_message(int fd) {
  const std::size_t size = identity_of(fd).size;
  std::uint64_t text_size = 0;
  if (size < sizeof text_size) no_message();
  const std::shared_ptr<char> bytes = read_bytes(fd, size);
  std::memcpy(&text_size, bytes.get(), sizeof text_size);
  if (text_size > size - sizeof text_size) no_message();
  const char* text = bytes.get() + sizeof text_size;
  nlohmann::json whole = nlohmann::json::parse(text, text + text_size, nullptr, false);
  if (!whole.is_object() || !whole["head"].is_object() || !whole["sizes"].is_array()) no_message();
  Message message{std::move(whole["head"]), {}, bytes};
  std::size_t offset = part_aligned(sizeof text_size + text_size);
  for (const nlohmann::json& part : whole["sizes"]) {
    const std::size_t part_size = part.is_number_unsigned() ? part.get<std::size_t>() : SIZE_MAX;
    if (part_size != 0 && (offset > size || part_size > size - offset)) no_message();
    message.parts.emplace_back(bytes.get() + std::min(offset, size), part_size);
    offset = part_aligned(offset + part_size);
  }
  return message;
}

}  // namespace tenon::host
