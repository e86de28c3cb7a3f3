// What host and tenon-probe hand each other around a call of an isolated backend: a JSON object and blocks of bytes, in a file of memory.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string_view>
#include <vector>

#include "host/plugins/find/file.h"

namespace tenon::host {

struct Message {
  nlohmann::json head;
  std::vector<std::string_view> parts;  // each at a multiple of 64 bytes
  std::shared_ptr<const void> owner;    // keeps the parts alive
};

/// A new file that no directory knows, closed on exec. Throws (out_of_memory).
Descriptor anonymous_file();

/// Replaces what the file holds. Throws (out_of_memory).
void write_message(int fd, const nlohmann::json& head, std::span<const std::string_view> parts);

/// Reads the file into memory of its own: whoever wrote it cannot change it any more. Throws (malformed) for a file that
/// write_message did not write.
Message read_message(int fd);

}  // namespace tenon::host
