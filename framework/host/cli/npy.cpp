#include "npy.h"

#include <fmt/format.h>

#include <cstring>
#include <fstream>
#include <sstream>

#include "core/base/error.h"
#include "core/base/regular_file.h"
#include "host/diagnostics/suggestion.h"

namespace tenon::cli {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";

struct TypeWord {
  const char* word;  // NumPy's, without the byte order
  DType dtype;
};
constexpr TypeWord kTypes[] = {{"b1", DType::b8},  {"u1", DType::u8},  {"i1", DType::i8},  {"i2", DType::i16},  {"i4", DType::i32}, {"i8", DType::i64},
                               {"f2", DType::f16}, {"f4", DType::f32}, {"f8", DType::f64}, {"c8", DType::c64}, {"c16", DType::c128}};

[[noreturn]] void malformed(const std::string& what) { throw Exception(Code::malformed, "the .npy file is damaged: " + what); }

/// Reads the header's Python dict literal: strings, True and False, tuples of integers; nothing else occurs in one.
class HeaderReader {
 public:
  explicit HeaderReader(std::string_view text) : text_(text) {}

  bool take(char c) {
    skip_spaces();
    if (text_.empty() || text_.front() != c) return false;
    text_.remove_prefix(1);
    return true;
  }
  void expect(char c) {
    if (!take(c)) malformed(fmt::format("its header lacks '{}'", c));
  }
  std::string string() {
    skip_spaces();
    const char quote = text_.empty() ? ' ' : text_.front();
    const std::size_t end = text_.find(quote, 1);
    if ((quote != '\'' && quote != '"') || end == std::string_view::npos) malformed("its header lacks a string");
    std::string result(text_.substr(1, end - 1));
    text_.remove_prefix(end + 1);
    return result;
  }
  bool boolean() {
    skip_spaces();
    for (const auto& [word, value] : {std::pair<std::string_view, bool>("True", true), {"False", false}}) {
      if (text_.substr(0, word.size()) != word) continue;
      text_.remove_prefix(word.size());
      return value;
    }
    malformed("its header lacks True or False");
  }
  std::vector<std::int64_t> tuple() {
    std::vector<std::int64_t> result;
    expect('(');
    while (!take(')')) {
      result.push_back(integer());
      if (!take(',')) {
        expect(')');
        break;
      }
    }
    return result;
  }
  /// True when what follows is no string: a structured type is a list.
  bool at_list() {
    skip_spaces();
    return !text_.empty() && text_.front() == '[';
  }

 private:
  void skip_spaces() {
    while (!text_.empty() && (text_.front() == ' ' || text_.front() == '\n')) text_.remove_prefix(1);
  }
  std::int64_t integer() {
    skip_spaces();
    std::int64_t value = 0;
    std::size_t digits = 0;
    for (; digits < text_.size() && text_[digits] >= '0' && text_[digits] <= '9'; ++digits)
      if (digits > 17) malformed("a size in its header is too large");
      else value = value * 10 + (text_[digits] - '0');
    if (digits == 0) malformed("its header lacks a size");
    text_.remove_prefix(digits);
    if (!text_.empty() && text_.front() == 'L') text_.remove_prefix(1);  // written by Python 2
    return value;
  }

  std::string_view text_;
};

DType dtype_of_word(const std::string& descr) {
  const std::string_view word = std::string_view(descr).substr(descr.empty() ? 0 : 1);
  for (const TypeWord& type : kTypes)
    if (word == type.word) {
      if (descr[0] == '>' && size_of(type.dtype) > 1) throw Exception(Code::unsupported, fmt::format("big-endian arrays are not read: {}", descr));
      return type.dtype;
    }
  throw Exception(Code::unsupported, fmt::format("arrays of this type are not read: {}", descr));
}

struct Header {
  DType dtype = DType::f32;
  bool fortran = false;
  std::vector<std::int64_t> shape;
};

Header parse_header(std::string_view text) {
  HeaderReader reader(text);
  Header header;
  int seen = 0;
  reader.expect('{');
  while (!reader.take('}')) {
    const std::string key = reader.string();
    reader.expect(':');
    if (key == "descr") {
      if (reader.at_list()) throw Exception(Code::unsupported, "structured arrays are not read");
      header.dtype = dtype_of_word(reader.string()), seen |= 1;
    } else if (key == "fortran_order") {
      header.fortran = reader.boolean(), seen |= 2;
    } else if (key == "shape") {
      header.shape = reader.tuple(), seen |= 4;
    } else {
      malformed(fmt::format("its header has the unknown key '{}'", key));
    }
    if (!reader.take(',')) {
      reader.expect('}');
      break;
    }
  }
  if (seen != 7) malformed("its header lacks descr, fortran_order or shape");
  return header;
}

/// Takes magic, version and header off the front.
Header take_header(std::string_view& bytes) {
  if (bytes.substr(0, kMagic.size()) != kMagic || bytes.size() < 10) throw Exception(Code::malformed, "this is no .npy file");
  const int version = static_cast<unsigned char>(bytes[6]);
  if (version < 1 || version > 3) throw Exception(Code::unsupported, fmt::format("version {} of the .npy format is not read", version));
  const std::size_t count_bytes = version == 1 ? 2 : 4;
  if (bytes.size() < 8 + count_bytes) malformed("it ends within the header");
  std::uint32_t size = 0;
  std::memcpy(&size, bytes.data() + 8, count_bytes);
  bytes.remove_prefix(8 + count_bytes);
  if (size > bytes.size()) malformed("it ends within the header");
  const Header header = parse_header(bytes.substr(0, size));
  bytes.remove_prefix(size);
  return header;
}

}  // namespace

Array parse_npy(std::string_view bytes) {
  const Header header = take_header(bytes);
  Array array;
  try {
    std::uint64_t wanted = size_of(header.dtype);
    for (const std::int64_t size : header.shape)
      if (__builtin_mul_overflow(wanted, static_cast<std::uint64_t>(size), &wanted)) malformed("the array in its header is too large");
    // Before memory is asked for: a header of a hundred bytes may promise anything.
    if (wanted > bytes.size()) malformed(fmt::format("it holds {} bytes of data; its header promises {}", bytes.size(), wanted));
    array = Array::zeros(header.dtype, header.shape);
  } catch (const Exception& error) {
    throw Exception(Code::malformed, error.what());
  }
  if (!array.bytes.empty()) std::memcpy(array.bytes.data(), bytes.data(), array.bytes.size());
  if (header.fortran)
    for (std::int64_t i = 0, stride = 1; i < static_cast<std::int64_t>(array.shape.size()); stride *= array.shape[static_cast<std::size_t>(i++)])
      array.strides[static_cast<std::size_t>(i)] = stride;
  return array;
}

std::string npy_bytes(const Array& array) {
  Array borrowed = array;
  Array rows = copy_of(borrowed.tensor());
  if (array.dtype == DType::bf16) {
    rows = Array::zeros(DType::f32, array.shape);
    for (std::int64_t i = 0, n = array.element_count(); i < n; ++i) rows.set(i, array.number(i));
  }
  std::string word;
  for (const TypeWord& type : kTypes)
    if (type.dtype == rows.dtype) word = (size_of(type.dtype) == 1 ? "|" : "<") + std::string(type.word);
  std::string shape;
  for (const std::int64_t size : array.shape) shape += fmt::format("{},{}", size, array.shape.size() == 1 ? "" : " ");
  if (array.shape.size() > 1) shape.resize(shape.size() - 2);
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", word, shape);
  // Magic, version, size and header together are a multiple of 64 bytes; a line feed ends the header.
  header.append(63 - (10 + header.size()) % 64, ' ');
  header += '\n';
  std::string bytes(kMagic);
  bytes += std::string("\x01\x00", 2);
  bytes += static_cast<char>(header.size() & 0xff);
  bytes += static_cast<char>(header.size() >> 8);
  bytes += header;
  bytes.append(reinterpret_cast<const char*>(rows.bytes.data()), rows.bytes.size());
  return bytes;
}

Array read_npy(const std::string& path) {
  if (const std::string why = why_not_readable(path); !why.empty()) throw Exception(Code::not_found, fmt::format("cannot read {}: {}{}", path, why, host::nearest_path_text(path)));
  if (size_of_file(path) > memory_of_machine()) throw Exception(Code::out_of_memory, fmt::format("{} has {} bytes, more than the memory of this machine", path, size_of_file(path)));
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  try {
    return parse_npy(text.str());
  } catch (const Exception& error) {
    throw Exception(error.code(), fmt::format("{}: {}", path, error.what()));
  }
}

void write_npy(const std::string& path, const Array& array) {
  std::ofstream file(path, std::ios::binary);
  file << npy_bytes(array);
  file.close();
  if (!file) throw Exception(Code::not_found, fmt::format("cannot write {}", path));
}

}  // namespace tenon::cli
