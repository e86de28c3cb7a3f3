#include "fuzz/container.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "core/base/error.h"
#include "core/base/hash.h"
#include "core/ir/buffer.h"
#include "core/ir/printer.h"
#include "core/ops/check/type_checker.h"
#include "core/ops/portable.h"
#include "host/exported/program_file.h"
#include "host/plugins/contact/crossing.h"

namespace tenon::fuzz {
namespace {

// The layout, as host/exported/container.cpp has it: here it is written by hand, so that every field can be wrong.
struct Header {
  char magic[8] = {'T', 'E', 'N', 'O', 'N', 'T', 'N', 'X'};
  std::uint32_t version = 1, section_count = 0;
  std::uint64_t file_size = 0, checksum = 0;
};

struct Entry {
  char name[16] = {};
  std::uint64_t offset = 0, size = 0, low = 0, high = 0;
};

struct Section {
  std::string name;
  std::vector<std::uint8_t> bytes;
};

std::size_t below(Random& random, std::size_t n) { return n == 0 ? 0 : random() % n; }

std::size_t aligned_up(std::size_t at) { return (at + 63) / 64 * 64; }

/// Bytes of all constants; none where they cannot be counted, or are many.
std::vector<std::uint8_t> constants_of(const ir::Graph& graph, Random& random) {
  std::vector<std::uint8_t> bytes;
  for (const ir::Constant& constant : graph.constants()) {
    std::size_t size = size_of(constant.type.dtype);
    for (const ir::Dim& d : constant.type.shape)
      if (!d.is_constant() || d.constant() < 0 || __builtin_mul_overflow(size, static_cast<std::size_t>(d.constant()), &size) || size > (1 << 20)) return {};
    bytes.resize(aligned_up(bytes.size()));
    for (; size > 0; --size) bytes.push_back(static_cast<std::uint8_t>(random() % (constant.type.dtype == DType::b8 ? 2 : 256)));
  }
  return bytes;
}

void change_section(Section& section, const std::vector<std::uint8_t>& donor, Random& random) {
  if (section.name == "graph") return mutate_buffer(section.bytes, donor, random);
  if (section.name == "signature") {
    std::string text(section.bytes.begin(), section.bytes.end());
    mutate_text(text, "[1, {\"a\": \"\\ud800\", \"b\": [[]]}]", random);
    section.bytes.assign(text.begin(), text.end());
    return;
  }
  if (below(random, 2) == 0) section.bytes.resize(below(random, 2) == 0 ? below(random, section.bytes.size() + 1) : section.bytes.size() + below(random, 130));
  else if (!section.bytes.empty()) section.bytes[below(random, section.bytes.size())] = static_cast<std::uint8_t>(random());
}

void change_sections(std::vector<Section>& sections, const std::vector<std::uint8_t>& donor, Random& random) {
  if (sections.empty()) return;
  const std::size_t at = below(random, sections.size());
  static const std::vector<std::string> kNames{"graph", "constants", "signature", "", "Graph", "code", "a name of 15 b", "a name of 16 byt"};
  switch (below(random, 10)) {
    case 0: sections.erase(sections.begin() + static_cast<std::ptrdiff_t>(at)); break;
    case 1: sections.push_back(sections[at]); break;
    case 2: std::swap(sections[at], sections[below(random, sections.size())]); break;
    case 3: sections[at].name = kNames[below(random, kNames.size())]; break;
    default: change_section(sections[at], donor, random);
  }
}

/// A number that is likely to be one too many, one too few, or to overflow.
std::uint64_t telling_number(std::uint64_t old, Random& random) {
  switch (below(random, 10)) {
    case 0: return 0;
    case 1: return UINT64_MAX;
    case 2: return old + 1;
    case 3: return old - 1;
    case 4: return old + 64;
    case 5: return old ^ (std::uint64_t{1} << below(random, 64));
    case 6: return UINT64_MAX - 63;
    case 7: return std::uint64_t{1} << 63;
    case 8: return below(random, 70);
    default: return random();
  }
}

void change_field(Header& header, std::vector<Entry>& table, Random& random) {
  switch (below(random, table.empty() ? 3 : 8)) {
    case 0: header.version = static_cast<std::uint32_t>(telling_number(header.version, random)); break;
    case 1: header.section_count = static_cast<std::uint32_t>(telling_number(header.section_count, random)); break;
    case 2: header.file_size = telling_number(header.file_size, random); break;
    default: {
      Entry& entry = table[below(random, table.size())];
      std::uint64_t& field = below(random, 2) == 0 ? entry.offset : entry.size;
      field = telling_number(field, random);
    }
  }
}

/// The checksum that a reader expects of that many entries, as far as there are so many.
std::uint64_t checksum_of(const Header& header, const std::vector<Entry>& table) {
  const std::size_t count = std::min<std::size_t>(header.section_count, table.size());
  return content_hash(table.data(), count * sizeof(Entry), content_hash(&header, offsetof(Header, checksum)).low).low;
}

/// The file, of which `changes` fields of header and table are wrong.
std::vector<std::uint8_t> written(const std::vector<Section>& sections, std::size_t changes, Random& random) {
  Header header;
  header.section_count = static_cast<std::uint32_t>(sections.size());
  std::vector<Entry> table(sections.size());
  std::size_t end = sizeof header + sections.size() * sizeof(Entry);
  for (std::size_t i = 0; i < sections.size(); ++i) {
    std::memcpy(table[i].name, sections[i].name.data(), std::min(sections[i].name.size(), sizeof table[i].name));
    const Hash128 hash = content_hash(sections[i].bytes.data(), sections[i].bytes.size());
    table[i].offset = aligned_up(end), table[i].size = sections[i].bytes.size(), table[i].low = hash.low, table[i].high = hash.high;
    end = table[i].offset + table[i].size;
  }
  header.file_size = end;
  std::vector<std::uint8_t> file(end);
  for (std::size_t i = 0; i < sections.size(); ++i) std::ranges::copy(sections[i].bytes, file.begin() + static_cast<std::ptrdiff_t>(table[i].offset));
  for (; changes > 0; --changes) change_field(header, table, random);
  header.checksum = checksum_of(header, table);
  std::memcpy(file.data(), &header, sizeof header);
  if (!table.empty()) std::memcpy(file.data() + sizeof header, table.data(), table.size() * sizeof(Entry));
  return file;
}

void change_bytes(std::vector<std::uint8_t>& file, Random& random) {
  switch (below(random, 3)) {
    case 0: file.resize(below(random, file.size() + 1)); break;
    case 1: file.resize(file.size() + 1 + below(random, 100)); break;
    default: file[below(random, file.size())] ^= static_cast<std::uint8_t>(1u << below(random, 8));
  }
}

// ---- what reads them

void promise(bool kept, const char* what, const std::string& detail = {}) {
  if (kept) return;
  std::fprintf(stderr, "broken promise: %s\n%s\n", what, detail.c_str());
  std::abort();
}

/// A file in memory, under a path.
class MemoryFile {
 public:
  explicit MemoryFile(const std::vector<std::uint8_t>& bytes) : file_(::memfd_create("container", MFD_CLOEXEC)), path_(fmt::format("/proc/self/fd/{}", file_)) {
    promise(file_ >= 0 && ::write(file_, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()), "a file in memory can be written");
  }
  ~MemoryFile() { ::close(file_); }
  MemoryFile(const MemoryFile&) = delete;

  const std::string& path() const { return path_; }

 private:
  int file_;
  std::string path_;
};

/// All bytes of all constants, behind each other.
std::string bytes_of_constants(const ir::Graph& graph) {
  std::string all;
  for (const ir::Constant& constant : graph.constants()) {
    std::size_t size = size_of(constant.type.dtype);
    for (const ir::Dim& d : constant.type.shape) size *= static_cast<std::size_t>(d.constant());
    if (size > 0) all.append(static_cast<const char*>(constant.data), size);
  }
  return all;
}

/// Written again it is the same program.
void check_trip(const host::ExportedProgram& program) {
  const std::string path = (std::filesystem::temp_directory_path() / fmt::format("tenon_container_{}.tnx", ::getpid())).string();
  host::ConstantStore store;
  const host::Crossing crossing(program.graph, store);
  try {
    host::save_program(crossing.graph(), program.signature, path);
    const host::ExportedProgram again = host::load_program(path);
    ::unlink(path.c_str());
    promise(ir::print_graph(again.graph) == ir::print_graph(program.graph), "a program is written and loaded as the same graph", ir::print_graph(program.graph));
    promise(bytes_of_constants(again.graph) == bytes_of_constants(program.graph), "with the same constants");
    promise(again.signature == program.signature, "with the same signature", program.signature);
  } catch (const Exception& e) {
    promise(false, "what a driver accepts of a file can be written again", e.what());
  }
}

}  // namespace

std::vector<std::uint8_t> container_of(const ir::Graph& graph, const std::vector<std::uint8_t>& donor, Random& random, bool sound) {
  const std::string signature = R"({"parameters": [["x", "tensor"], ["n", 3]], "results": {"kind": "tuple", "items": [0, null, "\u00e9"]}, "é": 1.5e3})";
  std::vector<Section> sections{{"graph", ir::write_buffer(graph)}, {"signature", {signature.begin(), signature.end()}}, {"constants", constants_of(graph, random)}};
  if (sound) return written(sections, 0, random);
  const std::size_t way = below(random, 8);
  for (std::size_t changes = way < 5 ? 1 + below(random, 2) : 0; changes > 0; --changes) change_sections(sections, donor, random);
  std::vector<std::uint8_t> file = written(sections, way >= 5 && way < 7 ? 1 + below(random, 2) : 0, random);
  if (way == 7) change_bytes(file, random);
  return file;
}

Verdict attack_container(const std::vector<std::uint8_t>& bytes, Random& random) {
  const MemoryFile file(bytes);
  host::ExportedProgram program;
  try {
    program = host::load_program(file.path());
  } catch (const Exception& e) {
    promise(std::string_view(e.what()).find(file.path()) != std::string_view::npos, "a refusal names the file", e.what());
    return Verdict::refused;
  }
  volatile std::size_t sum = std::ranges::count(bytes_of_constants(program.graph), 'x');
  (void)sum;
  if (!ops::accept_graph(program.graph).ok() || !ops::why_not_portable(program.graph).empty()) return Verdict::refused;
  if (below(random, 4) == 0) check_trip(program);
  bool ran = false;
  return attack_types(program.graph, random, ran);
}

}  // namespace tenon::fuzz
