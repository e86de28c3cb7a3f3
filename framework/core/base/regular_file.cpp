#include "core/base/regular_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace tenon {

std::string why_not_readable(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return std::strerror(errno);
  if (S_ISDIR(status.st_mode)) return "it is a directory";
  if (S_ISFIFO(status.st_mode)) return "it is a FIFO, not a regular file";
  if (!S_ISREG(status.st_mode)) return "it is a device or a socket, not a regular file";
  return ::access(path.c_str(), R_OK) == 0 ? std::string() : std::strerror(errno);
}

std::uint64_t size_of_file(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 ? static_cast<std::uint64_t>(status.st_size) : 0;
}

std::uint64_t memory_of_machine() {
  static const std::uint64_t bytes = static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return bytes;
}

}  // namespace tenon
