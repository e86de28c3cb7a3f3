// The layout, little-endian:
//
//   header   "TENONTNX", u32 version, u32 number of sections, u64 size of the file, u64 checksum of what stands before it and the table
//   table    for each section: its name in 16 bytes (padded with zeros), u64 offset, u64 size, u64 low and u64 high half of its checksum
//   sections in the order of the table, each at the next multiple of 64, with zeros in between
//
// Checksums are content_hash (core/base/hash.h): they guard against accidents. What a section means is checked by its reader.
#include "host/exported/container.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

#include "core/base/error.h"
#include "core/base/hash.h"
#include "core/base/regular_file.h"
#include "host/plugins/find/file.h"

namespace tenon::host {
namespace {

constexpr char kMagic[8] = {'T', 'E', 'N', 'O', 'N', 'T', 'N', 'X'};
constexpr std::uint32_t kVersion = 1;
constexpr std::uint32_t kMostSections = 64;
constexpr char kZeros[kSectionAlignment] = {};

struct FileHeader {
  char magic[8];
  std::uint32_t version, section_count;
  std::uint64_t file_size;
  std::uint64_t checksum;
};

struct TableEntry {
  char name[16];
  std::uint64_t offset, size, low, high;
};

std::size_t aligned_up(std::size_t offset) { return (offset + kSectionAlignment - 1) / kSectionAlignment * kSectionAlignment; }

std::uint64_t checksum_of(const FileHeader& header, std::span<const TableEntry> table) {
  return content_hash(table.data(), table.size_bytes(), content_hash(&header, offsetof(FileHeader, checksum)).low).low;
}

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
  throw Exception(Code::malformed, fmt::format("{} is no sound exported program: {}", path, why));
}

/// A file under another name until it is complete.
class FileInTheMaking {
 public:
  explicit FileInTheMaking(const std::string& path) : path_(path), temporary_(fmt::format("{}.{}.part", path, ::getpid())) {
    file_ = Descriptor(::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
    if (!file_) fail();
  }
  ~FileInTheMaking() {
    if (!done_) ::unlink(temporary_.c_str());
  }

  void write(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t n = ::write(file_.get(), bytes.data(), std::min<std::size_t>(bytes.size(), std::size_t{1} << 30));
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) fail();
      bytes.remove_prefix(static_cast<std::size_t>(n));
      written_ += static_cast<std::size_t>(n);
    }
  }
  void pad() { write({kZeros, aligned_up(written_) - written_}); }

  void finish() {
    if (::fsync(file_.get()) != 0 || ::rename(temporary_.c_str(), path_.c_str()) != 0) fail();
    done_ = true;
  }

 private:
  [[noreturn]] void fail() const { throw Exception(Code::not_found, fmt::format("cannot write {}: {}", path_, std::strerror(errno))); }

  std::string path_, temporary_;
  Descriptor file_;
  std::size_t written_ = 0;
  bool done_ = false;
};

/// The pieces of a section as they will lie in the file: hashed as one run of bytes.
std::string_view joined(const SectionToWrite& section, std::string& storage) {
  if (section.pieces.empty()) return {};
  if (section.pieces.size() == 1) return section.pieces.front();
  for (std::string_view piece : section.pieces) {
    storage.resize(aligned_up(storage.size()));
    storage.append(piece);
  }
  return storage;
}

}  // namespace

void write_container(const std::string& path, std::span<const SectionToWrite> sections) {
  std::vector<std::string> storage(sections.size());
  std::vector<std::string_view> contents;
  std::vector<TableEntry> table(sections.size());
  std::size_t end = sizeof(FileHeader) + sections.size() * sizeof(TableEntry);
  for (std::size_t i = 0; i < sections.size(); ++i) {
    TENON_CHECK(!sections[i].name.empty() && sections[i].name.size() < sizeof table[i].name, "a section cannot be called '{}'", sections[i].name);
    contents.push_back(joined(sections[i], storage[i]));
    const Hash128 hash = content_hash(contents[i].data(), contents[i].size());
    table[i] = {{}, aligned_up(end), contents[i].size(), hash.low, hash.high};
    std::memcpy(table[i].name, sections[i].name.data(), sections[i].name.size());
    end = table[i].offset + table[i].size;
  }
  FileHeader header{{}, kVersion, static_cast<std::uint32_t>(sections.size()), end, 0};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  header.checksum = checksum_of(header, table);

  FileInTheMaking file(path);
  file.write({reinterpret_cast<const char*>(&header), sizeof header});
  file.write({reinterpret_cast<const char*>(table.data()), table.size() * sizeof(TableEntry)});
  for (std::string_view bytes : contents) {
    file.pad();
    file.write(bytes);
  }
  file.finish();
}

/// Reads a file's bytes one after the other.
class Container::Reading {
 public:
  explicit Reading(Container& container) : container_(container), file_(::open(container.path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)) {
    struct stat status {};
    if (!file_ || ::fstat(file_.get(), &status) != 0) fail(std::strerror(errno));
    if (!S_ISREG(status.st_mode)) fail("it is no regular file");
    container_.size_ = static_cast<std::size_t>(status.st_size);
  }

  /// Before the header has been found to be one no memory is taken for what follows.
  void begin() {
    char first[sizeof(FileHeader)];
    const ssize_t n = ::pread(file_.get(), first, sizeof first, 0);
    container_.check_beginning({first, static_cast<std::size_t>(std::max<ssize_t>(n, 0))});
    if (container_.size_ > memory_of_machine())
      throw Exception(Code::out_of_memory, fmt::format("cannot read {}: it has {} bytes, more than the memory of this machine", container_.path_, container_.size_));
    memory_ = static_cast<char*>(::operator new(container_.size_ + 1, std::align_val_t(kSectionAlignment)));
    container_.bytes_ = std::shared_ptr<const char>(memory_, [](const char* m) { ::operator delete(const_cast<char*>(m), std::align_val_t(kSectionAlignment)); });
  }

  /// Reads on to that place.
  void to(std::size_t end) {
    for (end = std::min(end, container_.size_); at_ < end;) {
      const ssize_t n = ::pread(file_.get(), memory_ + at_, std::min<std::size_t>(end - at_, std::size_t{1} << 30), static_cast<off_t>(at_));
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) fail(n < 0 ? std::strerror(errno) : "it shrank meanwhile");
      at_ += static_cast<std::size_t>(n);
    }
  }

 private:
  [[noreturn]] void fail(const char* why) const { throw Exception(Code::not_found, fmt::format("cannot read {}: {}", container_.path_, why)); }

  Container& container_;
  Descriptor file_;
  char* memory_ = nullptr;  // the container's
  std::size_t at_ = 0;
};

Container Container::read(const std::string& path, const Admission& admit) {
  Container container;
  container.path_ = path;
  Reading reading(container);
  reading.begin();
  reading.to(sizeof(FileHeader) + kMostSections * sizeof(TableEntry));
  container.check_header();
  container.read_table();
  if (admit) admit(container);
  for (Section& section : container.sections_) {
    reading.to(section.offset + section.size);
    container.check_section(section);
    if (admit) admit(container);
  }
  return container;
}

void Container::check_beginning(std::string_view first) const {
  FileHeader header;
  if (first.size() < sizeof header) refuse(path_, fmt::format("the header is cut off ({} bytes)", size_));
  std::memcpy(&header, first.data(), sizeof header);
  if (std::memcmp(header.magic, kMagic, sizeof kMagic) != 0) refuse(path_, "it does not begin like one");
  if (header.version != kVersion)
    throw Exception(Code::incompatible, fmt::format("{} has version {} of the format; this build of Tenon reads version {}: export it again", path_, header.version, kVersion));
  if (header.section_count > kMostSections || size_ < sizeof header + header.section_count * sizeof(TableEntry)) refuse(path_, "the table of sections is cut off");
  if (header.file_size != size_) refuse(path_, fmt::format("it has {} bytes and was written with {}: the end is missing, or something was added", size_, header.file_size));
}

void Container::check_header() const {
  FileHeader header;
  std::memcpy(&header, bytes_.get(), sizeof header);
  const std::span<const TableEntry> table(reinterpret_cast<const TableEntry*>(bytes_.get() + sizeof header), header.section_count);
  if (checksum_of(header, table) != header.checksum) refuse(path_, "the header or the table of sections is damaged (its checksum differs)");
}

// The table has been found undamaged; whoever wrote it may still have written nonsense.
void Container::read_table() {
  FileHeader header;
  std::memcpy(&header, bytes_.get(), sizeof header);
  const auto* table = reinterpret_cast<const TableEntry*>(bytes_.get() + sizeof header);
  std::size_t end = sizeof header + header.section_count * sizeof(TableEntry);
  for (std::uint32_t i = 0; i < header.section_count; ++i) {
    const TableEntry& entry = table[i];
    std::string name(entry.name, ::strnlen(entry.name, sizeof entry.name));
    const bool known = std::any_of(sections_.begin(), sections_.end(), [&](const Section& s) { return s.name == name; });
    if (name.empty() || name.size() == sizeof entry.name || known) refuse(path_, fmt::format("section {} has no name of its own", i));
    if (entry.offset != aligned_up(end) || entry.offset > size_ || entry.size > size_ - entry.offset) refuse(path_, fmt::format("the section '{}' lies outside of the file", name));
    sections_.push_back({std::move(name), entry.offset, entry.size, entry.offset - end, {entry.low, entry.high}, false});
    end = entry.offset + entry.size;
  }
  if (end != size_) refuse(path_, "something follows the last section");
}

void Container::check_section(Section& section) const {
  const char* bytes = bytes_.get() + section.offset;
  if (std::memcmp(bytes - section.gap, kZeros, section.gap) != 0) refuse(path_, fmt::format("something stands before the section '{}'", section.name));
  if (content_hash(bytes, section.size) != section.checksum) refuse(path_, fmt::format("the section '{}' is damaged (its checksum differs)", section.name));
  section.is_read = true;
}

const Container::Section& Container::find(std::string_view name) const {
  for (const Section& section : sections_)
    if (section.name == name) return section;
  refuse(path_, fmt::format("the section '{}' is missing", name));
}

bool Container::has_read(std::string_view name) const { return find(name).is_read; }

std::size_t Container::size_of(std::string_view name) const { return find(name).size; }

std::string_view Container::section(std::string_view name) const {
  const Section& found = find(name);
  TENON_CHECK(found.is_read, "the section '{}' is not read yet", name);
  return {bytes_.get() + found.offset, found.size};
}

std::vector<std::string> Container::names() const {
  std::vector<std::string> all;
  for (const Section& section : sections_) all.push_back(section.name);
  return all;
}

}  // namespace tenon::host
