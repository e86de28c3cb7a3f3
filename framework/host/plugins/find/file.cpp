#include "host/plugins/find/file.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "host/plugins/find/refusal.h"

namespace tenon::host {
namespace {

constexpr mode_t kOthersMayWrite = S_IWGRP | S_IWOTH;

/// Why the owner and mode of a file make it unsafe; empty when they do not.
std::string danger_of(const struct stat& status) {
  if (status.st_uid != 0 && status.st_uid != geteuid()) return fmt::format("belongs to another user (uid {})", status.st_uid);
  if (status.st_mode & S_IWOTH) return "is writable by everybody (chmod o-w)";
  if (status.st_mode & S_IWGRP) return "is writable by its group (chmod g-w)";
  return {};
}

/// openat, kept below the directory. Kernels before 5.6 do not know openat2: there no symbolic link is followed.
int open_beneath(int directory, const char* name) {
  constexpr std::uint64_t flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
  open_how how{};
  how.flags = flags;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  const long fd = syscall(SYS_openat2, directory, name, &how, sizeof how);
  if (fd >= 0 || (errno != ENOSYS && errno != EPERM)) return static_cast<int>(fd);
  return openat(directory, name, static_cast<int>(flags) | O_NOFOLLOW);
}

}  // namespace

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

Descriptor::~Descriptor() {
  if (fd_ >= 0) ::close(fd_);
}

std::string FileIdentity::text() const {
  return fmt::format("{:x}.{:x}.{:x}.{:x}.{:x}", device, inode, size, modified_ns, changed_ns);
}

FileIdentity identity_of(int fd) {
  struct stat status{};
  fstat(fd, &status);
  const auto ns = [](const timespec& t) { return std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec; };
  return {status.st_dev, status.st_ino, static_cast<std::uint64_t>(status.st_size), ns(status.st_mtim), ns(status.st_ctim)};
}

Descriptor open_directory(const std::string& path, Trust trust) {
  Descriptor directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory) throw Refused("missing_directory", "cannot be read: {}", std::strerror(errno));
  struct stat status{};
  fstat(directory.get(), &status);
  if (trust == Trust::checked)
    if (const std::string danger = danger_of(status); !danger.empty()) throw Refused("unsafe_directory", "the directory {}", danger);
  return directory;
}

Descriptor open_file_in(const Descriptor& directory, const std::string& name, Trust trust) {
  if (name.empty() || name.find('/') != std::string::npos || name == "." || name == "..")
    throw Refused("path_escapes", "a library is named by a plain file name in the manifest's directory, not: {}", name);
  Descriptor file(open_beneath(directory.get(), name.c_str()));
  if (!file && (errno == EXDEV || errno == ELOOP)) throw Refused("path_escapes", "is a symbolic link that leads out of the directory: {}", name);
  if (!file) throw Refused("missing_library", "cannot be read: {}: {}", std::strerror(errno), name);
  struct stat status{};
  fstat(file.get(), &status);
  if (!S_ISREG(status.st_mode)) throw Refused("unsafe_file", "is no regular file: {}", name);
  if (trust == Trust::checked)
    if (const std::string danger = danger_of(status); !danger.empty()) throw Refused("unsafe_file", "{} {}", name, danger);
  return file;
}

std::vector<std::string> names_in(const Descriptor& directory, std::string_view ending) {
  std::vector<std::string> names;
  // A descriptor of its own, since closedir closes it, and a fresh one, since the offset is shared.
  DIR* entries = fdopendir(openat(directory.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!entries) return names;
  while (const dirent* entry = readdir(entries)) {
    const std::string_view name = entry->d_name;
    if (name.size() > ending.size() && name.substr(name.size() - ending.size()) == ending) names.emplace_back(name);
  }
  closedir(entries);
  std::sort(names.begin(), names.end());
  return names;
}

std::string read_all(int fd, std::uint64_t limit) {
  std::string bytes;
  char block[16384];
  for (off_t at = 0; bytes.size() < limit;) {
    const ssize_t n = pread(fd, block, std::min<std::uint64_t>(sizeof block, limit - bytes.size()), at);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    bytes.append(block, static_cast<std::size_t>(n));
    at += n;
  }
  return bytes;
}

}  // namespace tenon::host
