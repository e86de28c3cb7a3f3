#include "parameters.h"

#include <algorithm>
#include <cstdlib>

using namespace tenon::cuda;

namespace {

/// The number behind a word; `otherwise` where the word is not there.
std::size_t number_behind(const std::string& text, const std::string& word, std::size_t otherwise) {
  const std::size_t at = text.find(word);
  return at == std::string::npos ? otherwise : std::strtoull(text.c_str() + at + word.size(), nullptr, 10);
}

std::vector<std::string> parts_of(const std::string& text, const std::string& between) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(between, at), text.size());
    parts.push_back(text.substr(at, end - at));
    at = end + between.size();
  }
  return parts;
}

/// The comment at the head of a text, "// kernel0: reads 64 bytes from -8 at 4, number, writes 64 bytes at 16", says what its parameters are the addresses of.
std::vector<FakeParameter> memory_of(const std::string& ptx, const std::string& kernel) {
  const std::string head = "// " + kernel + ": ";
  const std::size_t at = ptx.find(head);
  std::vector<FakeParameter> found;
  if (at == std::string::npos) return found;
  for (const std::string& word : parts_of(ptx.substr(at + head.size(), ptx.find('\n', at) - at - head.size()), ", ")) {
    FakeParameter& p = found.emplace_back();
    const auto start = static_cast<std::int64_t>(number_behind(word, " from ", 0));
    if (word.starts_with("reads")) p = {FakeParameter::Kind::reads, number_behind(word, "reads ", 1), number_behind(word, " at ", 1), start};
    if (word.starts_with("writes")) p = {FakeParameter::Kind::writes, number_behind(word, "writes ", 1), number_behind(word, " at ", 1), start};
  }
  return found;
}

}  // namespace

std::map<std::string, CUfunc_st> functions_of(const std::string& ptx) {
  std::map<std::string, CUfunc_st> found;
  const std::string entry = ".entry ";
  for (std::size_t at = ptx.find(entry); at != std::string::npos;) {
    const std::size_t next = ptx.find(entry, at + 1), name = at + entry.size(), list = ptx.find('(', name), end = ptx.find(')', list);
    const std::string kernel = ptx.substr(name, list - name);
    std::vector<FakeParameter> memory = memory_of(ptx, kernel);
    CUfunc_st& function = found[kernel];
    for (const std::string& text : parts_of(ptx.substr(list, end - list), ",")) {
      if (text.find(".param") == std::string::npos) continue;
      const std::size_t bytes = number_behind(text, "[", 0);
      if (bytes > 0) function.in_first = bytes / sizeof(std::uint64_t);
      for (std::size_t i = 0; i < (bytes > 0 ? function.in_first : 1); ++i) {
        const std::size_t number = function.parameters.size();
        const bool is_there = bytes > 0 ? !memory.empty() : number < memory.size();
        function.parameters.push_back(is_there ? memory[number % memory.size()] : FakeParameter());
      }
    }
    at = next;
  }
  return found;
}
