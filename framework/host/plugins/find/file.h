// Files of plugin directories, opened so that nobody can swap or redirect them afterwards.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tenon::host {

/// Owns a file descriptor.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor();

  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

/// What tells one file, in one state, from another.
struct FileIdentity {
  dev_t device = 0;
  ino_t inode = 0;
  std::uint64_t size = 0;
  std::int64_t modified_ns = 0;
  std::int64_t changed_ns = 0;

  std::string text() const;
  friend bool operator==(const FileIdentity&, const FileIdentity&) = default;
};

FileIdentity identity_of(int fd);

/// Whether owner and mode are looked at: not for the directory that libtenon itself comes from.
enum class Trust { checked, own };

/// Opens a directory. Throws Refused: missing_directory; unsafe_directory when others than root and this user may write there.
Descriptor open_directory(const std::string& path, Trust trust);

/// Opens a regular file of an open directory for reading. A symbolic link may lead to elsewhere in the directory, not out of it.
/// Throws Refused: path_escapes, missing_library (any file that is not there), unsafe_file.
Descriptor open_file_in(const Descriptor& directory, const std::string& name, Trust trust);

/// The names in an open directory that end so, sorted.
std::vector<std::string> names_in(const Descriptor& directory, std::string_view ending);

/// Reads the whole file.
std::string read_all(int fd, std::uint64_t limit);

}  // namespace tenon::host
