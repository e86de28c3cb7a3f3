// The container of exported programs (.tnx): named sections of bytes, each with its checksum.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::host {

/// Sections lie at multiples of this in the file and in memory.
inline constexpr std::size_t kSectionAlignment = 64;

/// A section to write: its name (1 to 15 bytes), and pieces that follow each other, each at a multiple of kSectionAlignment.
struct SectionToWrite {
  std::string_view name;
  std::vector<std::string_view> pieces;
};

/// Writes the file in one go: what was there before stays until all is written. Throws (not_found) when the file cannot be written.
void write_container(const std::string& path, std::span<const SectionToWrite> sections);

/// A file read into memory, every byte of it checked.
class Container {
 public:
  /// Throws (not_found) for a file that cannot be read, (incompatible) for a version that this build does not know, (malformed) for
  /// anything else that is no sound container: the message names the file and the section.
  static Container read(const std::string& path);

  /// The bytes of a section. Throws (malformed) when there is none of that name.
  std::string_view section(std::string_view name) const;
  const std::string& path() const { return path_; }
  /// Keeps the bytes alive.
  std::shared_ptr<const void> owner() const { return bytes_; }

 private:
  struct Section {
    std::string name;
    std::string_view bytes;
  };

  void check_header() const;
  void read_table();
  void check_gaps() const;
  std::string_view all() const { return {bytes_.get(), size_}; }

  std::string path_;
  std::shared_ptr<const char> bytes_;
  std::size_t size_ = 0;
  std::vector<Section> sections_;  // in the order of the file
};

}  // namespace tenon::host
