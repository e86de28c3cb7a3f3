#include "host/store/private_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>

#include "host/config/flags.h"

namespace tenon::host {
namespace {

constexpr std::int64_t kHour = 3600;
constexpr std::string_view kTemporary = ".new";

/// Why what is in the folder may not be trusted; empty when it may.
std::string danger_of_folder(const struct stat& status) {
  if (status.st_uid != geteuid()) return fmt::format("belongs to another user (uid {})", status.st_uid);
  if (status.st_mode & S_IWOTH) return "is writable by everybody (chmod o-w)";
  if (status.st_mode & S_IWGRP) return "is writable by its group (chmod g-w)";
  return {};
}

}  // namespace

PrivateFolder::PrivateFolder(std::string path) : path_(std::move(path)) {
  if (path_.empty()) return;
  std::error_code ignored;
  std::filesystem::create_directories(std::filesystem::path(path_).parent_path(), ignored);
  ::mkdir(path_.c_str(), 0700);
  Descriptor directory(::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  struct stat status{};
  if (!directory || fstat(directory.get(), &status) != 0) problem_ = fmt::format("cannot be opened: {}", std::strerror(errno));
  else problem_ = danger_of_folder(status);
  if (problem_.empty()) directory_ = std::move(directory);
}

std::optional<std::string> PrivateFolder::read(const std::string& name, std::uint64_t most) const {
  if (!usable()) return std::nullopt;
  const Descriptor file(::openat(directory_.get(), name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat status{};
  if (!file || fstat(file.get(), &status) != 0) return std::nullopt;
  if (!S_ISREG(status.st_mode) || static_cast<std::uint64_t>(status.st_size) > most) return std::string();
  return read_all(file.get(), most);
}

bool PrivateFolder::write(const std::string& name, std::string_view bytes) const {
  if (!usable()) return false;
  static std::atomic<unsigned> serial{0};
  const std::string temporary = fmt::format("{}.{}.{}{}", name, getpid(), serial++, kTemporary);
  const Descriptor file(::openat(directory_.get(), temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file) return false;
  bool whole = true;
  while (whole && !bytes.empty()) {
    const ssize_t n = ::write(file.get(), bytes.data(), bytes.size());
    whole = n > 0;
    if (whole) bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  if (whole && ::renameat(directory_.get(), temporary.c_str(), directory_.get(), name.c_str()) == 0) return true;
  remove(temporary);
  return false;
}

bool PrivateFolder::remove(const std::string& name) const {
  return usable() && (::unlinkat(directory_.get(), name.c_str(), 0) == 0 || errno == ENOENT);
}

std::uint64_t PrivateFolder::lengthen(const std::string& name, std::uint64_t bytes) const {
  if (!usable()) return 0;
  const Descriptor file(::openat(directory_.get(), name.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600));
  const std::string zeros(bytes, '\0');
  struct stat status{};
  if (!file || fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return 0;
  if (::write(file.get(), zeros.data(), zeros.size()) != static_cast<ssize_t>(bytes) || fstat(file.get(), &status) != 0) return 0;
  return static_cast<std::uint64_t>(status.st_size);
}

void PrivateFolder::touch(const std::string& name) const {
  struct stat status{};
  if (!usable() || fstatat(directory_.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) return;
  if (std::time(nullptr) - status.st_mtim.tv_sec > kHour) utimensat(directory_.get(), name.c_str(), nullptr, AT_SYMLINK_NOFOLLOW);
}

std::vector<PrivateFolder::File> PrivateFolder::files(std::string_view ending) const {
  std::vector<File> found;
  if (!usable()) return found;
  struct stat status{};
  for (const std::string& name : names_in(directory_, kTemporary))
    if (fstatat(directory_.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 && std::time(nullptr) - status.st_mtim.tv_sec > kHour) remove(name);
  for (const std::string& name : names_in(directory_, ending))
    if (fstatat(directory_.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0)
      found.push_back({name, static_cast<std::uint64_t>(status.st_size), std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec});
  return found;
}

std::string cache_folder(const std::string& configured) {
  if (getauxval(AT_SECURE)) return {};
  if (!configured.empty()) return configured;
  if (const auto folder = environment("XDG_CACHE_HOME"); folder && !folder->empty()) return *folder + "/tenon";
  if (const auto home = environment("HOME"); home && !home->empty()) return *home + "/.cache/tenon";
  return {};
}

}  // namespace tenon::host
