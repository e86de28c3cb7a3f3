#include "host/plugins/find/elf_check.h"

#include <elf.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "host/plugins/find/refusal.h"

namespace tenon::host {
namespace {

#if defined(__x86_64__)
constexpr unsigned kMachine = EM_X86_64;
constexpr const char* kMachineName = "x86-64";
#elif defined(__aarch64__)
constexpr unsigned kMachine = EM_AARCH64;
constexpr const char* kMachineName = "AArch64";
#else
#error "the host knows x86-64 and AArch64"
#endif

// What is not refused is read whole. The largest libraries that are known have half of this; what lies behind all that the headers describe
// is a signature or padding; and compressing file systems make a library a few times smaller, not sixteen times.
constexpr std::uint64_t kMostBytes = std::uint64_t{4} << 30;
constexpr std::uint64_t kMostBehind = std::uint64_t{16} << 20;
constexpr std::uint64_t kMostHoles = 16;

/// True when [offset, offset + size) lies in a file of that many bytes; sums that wrap around do not.
bool within(std::uint64_t offset, std::uint64_t size, std::uint64_t file) { return size <= file && offset <= file - size; }

Elf64_Ehdr read_header(int fd, std::uint64_t file_size) {
  Elf64_Ehdr header{};
  const ssize_t n = pread(fd, &header, sizeof header, 0);
  if (n < SELFMAG || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) throw Refused("not_elf", "is no ELF library: it does not begin with \\x7fELF");
  if (n < static_cast<ssize_t>(sizeof header)) throw Refused("truncated", "is truncated: {} bytes are less than an ELF header", file_size);
  return header;
}

void check_kind(const Elf64_Ehdr& header) {
  if (header.e_ident[EI_CLASS] != ELFCLASS64) throw Refused("wrong_class", "is no 64-bit library (ELF class {})", header.e_ident[EI_CLASS]);
  if (header.e_ident[EI_DATA] != ELFDATA2LSB) throw Refused("wrong_class", "is no little-endian library (ELF data {})", header.e_ident[EI_DATA]);
  if (header.e_machine != kMachine)
    throw Refused("wrong_machine", "is for another machine (ELF machine {}); this one is {} ({})", header.e_machine, kMachineName, kMachine);
  if (header.e_type != ET_DYN) throw Refused("wrong_type", "is no shared library (ELF type {}, a shared library has {})", header.e_type, ET_DYN);
}

template <class Record>
std::vector<Record> read_table(int fd, const char* what, std::uint64_t offset, std::uint64_t count, std::uint64_t entry, std::uint64_t file_size) {
  if (count != 0 && entry != sizeof(Record)) throw Refused("not_elf", "is damaged: a {} header has {} bytes instead of {}", what, entry, sizeof(Record));
  if (!within(offset, count * entry, file_size))
    throw Refused("truncated", "is truncated: its {} headers end at byte {}, the file has {}", what, offset + count * entry, file_size);
  std::vector<Record> table(count);
  if (pread(fd, table.data(), count * entry, static_cast<off_t>(offset)) != static_cast<ssize_t>(count * entry))
    throw Refused("truncated", "is truncated: its {} headers cannot be read", what);
  return table;
}

/// Gives the end of the last one.
std::uint64_t check_segments(int fd, const Elf64_Ehdr& header, std::uint64_t file_size) {
  bool loads = false;
  bool dynamic = false;
  std::uint64_t end = header.e_phoff + header.e_phnum * sizeof(Elf64_Phdr);
  const auto segments = read_table<Elf64_Phdr>(fd, "segment", header.e_phoff, header.e_phnum, header.e_phentsize, file_size);
  for (std::size_t i = 0; i < segments.size(); ++i) {
    const Elf64_Phdr& segment = segments[i];
    loads |= segment.p_type == PT_LOAD;
    dynamic |= segment.p_type == PT_DYNAMIC;
    if (!within(segment.p_offset, segment.p_filesz, file_size))
      throw Refused("truncated", "is truncated: segment {} ends at byte {}, the file has {}", i, segment.p_offset + segment.p_filesz, file_size);
    end = std::max(end, segment.p_offset + segment.p_filesz);
  }
  if (!loads || !dynamic) throw Refused("wrong_type", "is no shared library: it has no {} segment", loads ? "dynamic" : "loadable");
  return end;
}

/// Gives the end of the last one.
std::uint64_t check_sections(int fd, const Elf64_Ehdr& header, std::uint64_t file_size) {
  std::uint64_t end = header.e_shoff + header.e_shnum * sizeof(Elf64_Shdr);
  const auto sections = read_table<Elf64_Shdr>(fd, "section", header.e_shoff, header.e_shnum, header.e_shentsize, file_size);
  for (std::size_t i = 0; i < sections.size(); ++i) {
    const Elf64_Shdr& section = sections[i];
    if (section.sh_type == SHT_NOBITS || section.sh_type == SHT_NULL) continue;
    if (!within(section.sh_offset, section.sh_size, file_size))
      throw Refused("truncated", "is truncated: section {} ends at byte {}, the file has {}", i, section.sh_offset + section.sh_size, file_size);
    end = std::max(end, section.sh_offset + section.sh_size);
  }
  return end;
}

}  // namespace

std::string check_elf(int fd) {
  struct stat status{};
  fstat(fd, &status);
  const auto file_size = static_cast<std::uint64_t>(status.st_size);
  if (file_size == 0) throw Refused("empty", "is an empty file");
  if (file_size > kMostBytes) throw Refused("too_large", "has {} bytes; {} are allowed", file_size, kMostBytes);
  if (file_size > kMostBehind && static_cast<std::uint64_t>(status.st_blocks) * 512 < file_size / kMostHoles)
    throw Refused("too_large", "says that it has {} bytes, and nearly all of them are holes", file_size);
  const Elf64_Ehdr header = read_header(fd, file_size);
  check_kind(header);
  const std::uint64_t end = std::max(check_segments(fd, header, file_size), check_sections(fd, header, file_size));
  if (file_size > end + kMostBehind) throw Refused("too_large", "has {} bytes behind the {} that its headers describe", file_size - end, end);
  return fmt::format("a 64-bit shared library for {}, complete with {} bytes", kMachineName, file_size);
}

}  // namespace tenon::host
