// Folders of the user's own, for what may be thrown away: probe verdicts and compiled code.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tenon::host {

/// A folder that only this user can write: what is read from it may be run. Files appear whole or not at all.
class PrivateFolder {
 public:
  /// Makes the folder (0700) if need be. It is unusable when it belongs to someone else, or others may write there.
  explicit PrivateFolder(std::string path);

  bool usable() const { return usable_; }
  const std::string& path() const { return path_; }
  std::optional<std::string> read(const std::string& name) const;
  /// False when the disk does not take it.
  bool write(const std::string& name, std::string_view bytes) const;

 private:
  std::string path_;
  bool usable_ = false;
};

/// The folder for caches: the configured one, else tenon in the user's cache directory (XDG_CACHE_HOME, ~/.cache). Empty when
/// there is none, or the process is privileged.
std::string cache_folder(const std::string& configured);

}  // namespace tenon::host
