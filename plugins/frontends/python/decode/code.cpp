#include "python/decode/code.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "python/compat/bytecode.h"
#include "python/objects/graph_break.h"

namespace tenon::python {
namespace {

/// Reads the exception table's numbers: six bits a byte, most significant first, bit 6 for "more" (CPython's
/// Objects/exception_handling_notes.txt).
class TableReader {
 public:
  explicit TableReader(PyObject* bytes) : at_(reinterpret_cast<unsigned char*>(PyBytes_AS_STRING(bytes))), end_(at_ + PyBytes_GET_SIZE(bytes)) {}
  bool more() const { return at_ < end_; }
  int number() {
    int value = *at_ & 63;
    while (*at_++ & 64) value = (value << 6) | (*at_ & 63);
    return value;
  }

 private:
  const unsigned char *at_, *end_;
};

struct Decoder {
  DecodedCode result;
  std::vector<std::int32_t> instruction_at;  // by code unit; one past the end included
  std::vector<std::pair<std::size_t, std::int32_t>> jumps;  // instruction, target unit

  explicit Decoder(PyCodeObject* code) {
    result.object = Ref::borrow(reinterpret_cast<PyObject*>(code));
    read_instructions(checked(PyCode_GetCode(code)).get());
    for (auto [instruction, unit] : jumps) {
      Instruction& jump = result.instructions[instruction];
      jump.target = index_of(unit) + (jump.op == Op::for_iter ? compat::loop_exit_length() : 0);
    }
    read_handlers(code->co_exceptiontable);
  }

  std::int32_t index_of(std::int32_t unit) const {
    if (unit < 0 || unit >= static_cast<std::int32_t>(instruction_at.size())) throw GraphBreak("bytecode with a jump out of its code");
    return instruction_at[unit];
  }

  void read_instructions(PyObject* bytes) {
    const auto* raw = reinterpret_cast<const unsigned char*>(PyBytes_AS_STRING(bytes));
    const std::int32_t units = static_cast<std::int32_t>(PyBytes_GET_SIZE(bytes) / 2);
    std::int32_t wide = 0;
    std::uint8_t prefixes = 0;
    for (std::int32_t unit = 0; unit < units; ++unit) {
      instruction_at.push_back(static_cast<std::int32_t>(result.instructions.size()));
      const int opcode = raw[2 * unit];
      const std::int32_t arg = wide | raw[2 * unit + 1];
      if (opcode == compat::extended_arg()) {
        wide = arg << 8;
        ++prefixes;
        continue;
      }
      const compat::Meaning meaning = compat::meaning_of(opcode);
      if (!meaning.skip) append(opcode, meaning, {.op = meaning.op, .prefixes = prefixes, .arg = arg, .unit = unit}, raw, units);
      wide = prefixes = 0;
    }
    instruction_at.push_back(static_cast<std::int32_t>(result.instructions.size()));
  }

  void append(int opcode, compat::Meaning meaning, Instruction instruction, const unsigned char* raw, std::int32_t units) {
    const std::int32_t arg = instruction.arg;
    Instruction second;
    const bool pair = compat::refine(opcode, arg, instruction, second);
    if (meaning.jump != compat::Jump::none) {
      // Relative to the instruction after the inline caches.
      std::int32_t next = instruction.unit + 1;
      while (next < units && compat::is_cache(raw[2 * next])) ++next;
      jumps.emplace_back(result.instructions.size(), meaning.jump == compat::Jump::forward ? next + arg : next - arg);
    }
    result.instructions.push_back(instruction);
    if (pair) result.instructions.push_back(second);
  }

  void read_handlers(PyObject* table) {
    TableReader reader(table);
    while (reader.more()) {
      const int start = reader.number(), length = reader.number(), target = reader.number(), depth_and_lasti = reader.number();
      result.handlers.push_back({index_of(start), index_of(start + length), index_of(target), depth_and_lasti >> 1, (depth_and_lasti & 1) != 0});
    }
  }
};

using Cache = std::unordered_map<PyCodeObject*, std::shared_ptr<const DecodedCode>>;

Cache& cache() {
  static auto* const all = new Cache();
  return *all;
}

/// Decoding is quick beside evaluating; a process may compile any number of functions.
constexpr std::size_t kMostKept = 512;

}  // namespace

const Handler* DecodedCode::handler_of(int instruction) const {
  for (const Handler& handler : handlers)
    if (handler.begin <= instruction && instruction < handler.end) return &handler;
  return nullptr;
}

SourcePosition position_at(PyCodeObject* code, int byte_offset) {
  SourcePosition position;
  if (PyCode_Addr2Location(code, byte_offset, &position.line, &position.column, &position.end_line, &position.end_column) == 0) position = {};
  return position;
}

SourcePosition DecodedCode::position_of(int instruction) const {
  SourcePosition position;
  for (int at = instruction; at >= 0 && position.line < 0; --at) position = position_at(code(), 2 * instructions[at].unit);
  return position.line < 0 ? SourcePosition{.line = code()->co_firstlineno} : position;
}

std::shared_ptr<const DecodedCode> decoded(PyCodeObject* code) {
  if (const auto found = cache().find(code); found != cache().end()) return found->second;
  auto made = std::make_shared<const DecodedCode>(Decoder(code).result);
  if (cache().size() >= kMostKept) forget_decoded_code();
  cache().insert_or_assign(code, made);
  return made;
}

void forget_decoded_code() { const Cache gone = std::exchange(cache(), {}); }

}  // namespace tenon::python
