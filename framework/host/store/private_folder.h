// Folders of the user's own, for what may be thrown away: probe verdicts and compiled code.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "host/plugins/find/file.h"

namespace tenon::host {

/// A folder that only this user can write: what is read from it may be run. Files appear whole or not at all. It is opened once:
/// who renames it afterwards changes nothing.
class PrivateFolder {
 public:
  /// Makes the folder (0700) if need be. It is unusable when it belongs to someone else, or others may write there.
  explicit PrivateFolder(std::string path);

  bool usable() const { return static_cast<bool>(directory_); }
  const std::string& path() const { return path_; }
  /// Why it is unusable; empty when it is not, and when it has no path.
  const std::string& problem() const { return problem_; }
  /// Nothing where there is no such file; nothing in it where it is no regular file, or has more than `most` bytes.
  std::optional<std::string> read(const std::string& name, std::uint64_t most = std::uint64_t{1} << 20) const;
  /// False when the disk does not take it.
  bool write(const std::string& name, std::string_view bytes) const;
  /// False, with errno set, when the file is still there.
  bool remove(const std::string& name) const;
  /// Lengthens a file, which is made if need be, by so many bytes; gives its size then, or 0 when the disk does not take them.
  std::uint64_t lengthen(const std::string& name, std::uint64_t bytes) const;
  /// Notes that the file was used now, unless that was noted within the hour.
  void touch(const std::string& name) const;

  struct File {
    std::string name;
    std::uint64_t size = 0;
    std::int64_t used = 0;  // when, in nanoseconds
  };
  /// The files whose names end so. Removes what processes left that ended while they wrote.
  std::vector<File> files(std::string_view ending) const;

 private:
  std::string path_;
  std::string problem_;
  Descriptor directory_;
};

/// The folder for caches: the configured one, else tenon in the user's cache directory (XDG_CACHE_HOME, ~/.cache). Empty when
/// there is none, or the process is privileged.
std::string cache_folder(const std::string& configured);

}  // namespace tenon::host
