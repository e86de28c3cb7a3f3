// The tables that the buffer writer fills on its way: strings, expressions and types, each stored once, in order of first use.
#pragma once

#include <algorithm>
#include <cstring>
#include <string_view>
#include <vector>

#include "core/abi/buffer_layout.h"
#include "core/base/hash.h"
#include "core/ir/record_column.h"
#include "core/ir/record_table.h"
#include "core/ir/type_table.h"

namespace tenon::ir::tables {

inline std::uint64_t word_at(const char* p) {
  std::uint64_t word;
  std::memcpy(&word, p, 8);
  return word;
}

/// Up to 7 bytes as one word. Not a memcpy of unknown length: names are short, and this is where writing spends its time.
inline std::uint64_t short_word(const char* p, std::size_t n) {
  std::uint32_t low, high;
  if (n >= 4) {
    std::memcpy(&low, p, 4);
    std::memcpy(&high, p + n - 4, 4);
    return std::uint64_t{high} << 32 | low;
  }
  if (n == 0) return 0;
  const auto byte = [p](std::size_t i) { return static_cast<std::uint64_t>(static_cast<unsigned char>(p[i])); };
  return byte(0) | byte(n / 2) << 8 | byte(n - 1) << 16;
}

inline std::uint64_t hash_of(std::string_view s) {
  if (s.size() < 8) return mix(s.size(), short_word(s.data(), s.size()));
  std::uint64_t h = s.size();
  const char* last = s.data() + s.size() - 8;
  for (const char* p = s.data(); p < last; p += 8) h = mix(h, word_at(p));
  return mix(h, word_at(last));
}

inline bool same_bytes(const char* a, const char* b, std::size_t n) {
  if (n < 8) return short_word(a, n) == short_word(b, n);
  for (std::size_t i = 0; i + 8 < n; i += 8)
    if (word_at(a + i) != word_at(b + i)) return false;
  return word_at(a + n - 8) == word_at(b + n - 8);
}

/// Copies a short text in two moves that may overlap.
inline void copy_text(char* to, const char* from, std::size_t n) {
  if (n > 16 || n < 4) {
    std::memcpy(to, from, n);
  } else if (n < 8) {
    std::memcpy(to, from, 4);
    std::memcpy(to + n - 4, from + n - 4, 4);
  } else {
    std::memcpy(to, from, 8);
    std::memcpy(to + n - 8, from + n - 8, 8);
  }
}

/// Text and string records of one part.
struct Strings {
  RecordColumn<char> text;
  RecordColumn<TenonString> records;
  RecordTable table;

  bool is(std::uint32_t id, std::string_view s) const { return records[id].size == s.size() && same_bytes(text.data() + records[id].offset, s.data(), s.size()); }

  /// Stores a string that is not expected to occur again.
  std::uint32_t append(std::string_view s) {
    records.make_room(1);
    records.put({static_cast<std::uint32_t>(text.size()), static_cast<std::uint32_t>(s.size())});
    text.make_room(s.size() + 1);
    char* to = text.extend(s.size() + 1);
    copy_text(to, s.data(), s.size());
    to[s.size()] = 0;
    return static_cast<std::uint32_t>(records.size() - 1);
  }

  std::uint32_t intern(std::string_view s) {
    return table.find_or_make(hash_of(s), [&](std::uint32_t id) { return is(id, s); }, [&] { return append(s); });
  }

  std::uint32_t intern_or_none(std::string_view s) { return s.empty() ? TENON_NONE : intern(s); }
};

/// Expressions, each (kind, operands) once; operands come first.
struct Expressions {
  std::vector<TenonExpression> records;
  RecordTable table;

  std::uint32_t record(std::uint32_t kind, std::uint32_t a, std::uint32_t b, std::int64_t value) {
    std::uint64_t h = mix(mix(kind, std::uint64_t{a} << 32 | b), static_cast<std::uint64_t>(value));
    const auto equals = [&](std::uint32_t id) {
      const TenonExpression& e = records[id];
      return e.kind == kind && e.a == a && e.b == b && e.value == value;
    };
    return table.find_or_make(h, equals, [&] {
      records.push_back({kind, a, b, 0, value});
      return static_cast<std::uint32_t>(records.size() - 1);
    });
  }

  std::uint32_t constant(std::int64_t value) { return record(TENON_EXPRESSION_CONSTANT, 0, 0, value); }

  std::uint32_t atom(const DimAtom& atom) {
    if (atom.op == DimOp::symbol) return record(TENON_EXPRESSION_SYMBOL, atom.symbol.value, 0, 0);
    static constexpr std::uint32_t kKinds[] = {0, TENON_EXPRESSION_FLOOR_DIV, TENON_EXPRESSION_MOD, TENON_EXPRESSION_MIN, TENON_EXPRESSION_MAX};
    const std::uint32_t a = expression(atom.operands[0]), b = expression(atom.operands[1]);
    return record(kKinds[static_cast<std::size_t>(atom.op)], a, b, 0);
  }

  std::uint32_t term(const DimTerm& term) {
    std::uint32_t product = atom(term.atoms[0]);
    for (std::size_t i = 1; i < term.atoms.size(); ++i) product = record(TENON_EXPRESSION_MUL, product, atom(term.atoms[i]), 0);
    return term.coefficient == 1 ? product : record(TENON_EXPRESSION_MUL, product, constant(term.coefficient), 0);
  }

  std::uint32_t expression(const Dim& dim) {
    if (dim.is_constant()) return constant(dim.offset());
    std::uint32_t sum = term(dim.terms()[0]);
    for (std::size_t i = 1; i < dim.terms().size(); ++i) sum = record(TENON_EXPRESSION_ADD, sum, term(dim.terms()[i]), 0);
    return dim.offset() == 0 ? sum : record(TENON_EXPRESSION_ADD, sum, constant(dim.offset()), 0);
  }

  TenonDim dim(const Dim& d) { return d.is_constant() ? TenonDim{d.offset(), TENON_NONE, 0} : TenonDim{0, expression(d), 0}; }
};

/// Types, each once.
struct Types {
  std::vector<TenonType> records;
  std::vector<TenonDim> dims;
  std::vector<const Type*> types;
  RecordTable table;
  Expressions& expressions;

  explicit Types(Expressions& e) : expressions(e) {}

  std::uint32_t intern(const Type& t) {
    return table.find_or_make(hash_of(t), [&](std::uint32_t id) { return same_type(*types[id], t); }, [&] { return append(t); });
  }

  std::uint32_t append(const Type& t) {
    const auto first = static_cast<std::uint32_t>(dims.size());
    for (const Dim& d : t.shape) dims.push_back(expressions.dim(d));
    if (t.strides)
      for (const Dim& d : *t.strides) dims.push_back(expressions.dim(d));
    records.push_back({static_cast<std::uint8_t>(t.kind), static_cast<std::uint8_t>(t.dtype), t.device.kind,
                       static_cast<std::uint8_t>(t.strides.has_value()), t.device.index, first, static_cast<std::uint32_t>(t.rank())});
    types.push_back(&t);
    return static_cast<std::uint32_t>(records.size() - 1);
  }
};

}  // namespace tenon::ir::tables
