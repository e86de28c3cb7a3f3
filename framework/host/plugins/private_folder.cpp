#include "host/plugins/private_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>

#include "host/driver/flags.h"
#include "host/plugins/file.h"

namespace tenon::host {

PrivateFolder::PrivateFolder(std::string path) : path_(std::move(path)) {
  if (path_.empty()) return;
  std::error_code problem;
  const std::filesystem::path folder(path_);
  std::filesystem::create_directories(folder.parent_path(), problem);
  ::mkdir(path_.c_str(), 0700);
  struct stat status{};
  usable_ = ::stat(path_.c_str(), &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == geteuid() && !(status.st_mode & (S_IWGRP | S_IWOTH));
}

std::optional<std::string> PrivateFolder::read(const std::string& name) const {
  if (!usable_) return std::nullopt;
  const Descriptor file(::open((path_ + "/" + name).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!file) return std::nullopt;
  return read_all(file.get(), UINT64_MAX);
}

bool PrivateFolder::write(const std::string& name, std::string_view bytes) const {
  if (!usable_) return false;
  static std::atomic<unsigned> serial{0};
  const std::string temporary = fmt::format("{}/.{}.{}.{}", path_, name, getpid(), serial++);
  const Descriptor file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file) return false;
  bool whole = true;
  while (whole && !bytes.empty()) {
    const ssize_t n = ::write(file.get(), bytes.data(), bytes.size());
    whole = n > 0;
    if (whole) bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  if (whole && ::rename(temporary.c_str(), (path_ + "/" + name).c_str()) == 0) return true;
  ::unlink(temporary.c_str());
  return false;
}

std::string cache_folder(const std::string& configured) {
  if (getauxval(AT_SECURE)) return {};
  if (!configured.empty()) return configured;
  if (const auto folder = environment("XDG_CACHE_HOME"); folder && !folder->empty()) return *folder + "/tenon";
  if (const auto home = environment("HOME"); home && !home->empty()) return *home + "/.cache/tenon";
  return {};
}

}  // namespace tenon::host
