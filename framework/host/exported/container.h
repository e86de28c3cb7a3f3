// The container of exported programs (.tnx): named sections of bytes, each with its checksum.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/hash.h"

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
  /// `admit` is asked when the table is known, and after each section: what it throws ends the reading before more memory is touched.
  using Admission = std::function<void(const Container& so_far)>;
  static Container read(const std::string& path, const Admission& admit = {});

  /// The bytes of a section. Throws (malformed) when there is none of that name.
  std::string_view section(std::string_view name) const;
  /// The names in the table, in the order of the file; the size that it gives a section, and whether that has been read.
  std::vector<std::string> names() const;
  std::size_t size_of(std::string_view name) const;
  bool has_read(std::string_view name) const;
  const std::string& path() const { return path_; }
  /// Keeps the bytes alive.
  std::shared_ptr<const void> owner() const { return bytes_; }

 private:
  class Reading;
  struct Section {
    std::string name;
    std::size_t offset, size, gap;  // the gap stands before it
    Hash128 checksum;
    bool is_read;
  };

  void check_beginning(std::string_view first) const;
  void check_header() const;
  void read_table();
  void check_section(Section& section) const;
  const Section& find(std::string_view name) const;

  std::string path_;
  std::shared_ptr<const char> bytes_;
  std::size_t size_ = 0;
  std::vector<Section> sections_;  // in the order of the file
};

}  // namespace tenon::host
