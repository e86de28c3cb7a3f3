// The names of ops and attributes: few words that very many nodes carry.
#pragma once

#include <compare>
#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace tenon::ir {

/// A word that is stored once, as cheap to copy and to compare as a pointer; it converts to the text that it stands for.
/// Words stay for the life of the library: their number is bounded by what catalogues, plugins and graph files are written in.
class Name {
 public:
  /// The empty word.
  Name() : entry_(&kEmpty) {}
  /// Finds or stores the word. Any thread may call.
  Name(std::string_view text);
  Name(const std::string& text) : Name(std::string_view(text)) {}
  Name(const char* text) : Name(std::string_view(text)) {}

  const std::string& text() const { return entry_->text; }
  operator const std::string&() const { return entry_->text; }
  operator std::string_view() const { return entry_->text; }
  const char* c_str() const { return entry_->text.c_str(); }
  bool empty() const { return entry_->text.empty(); }
  std::size_t size() const { return entry_->text.size(); }
  /// 0 for the empty word, then counts up in order of first use: for tables indexed by name. Another run may number otherwise.
  std::uint32_t number() const { return entry_->number; }

  friend bool operator==(Name a, Name b) { return a.entry_ == b.entry_; }
  friend bool operator==(Name a, const std::convertible_to<std::string_view> auto& b) { return a.entry_->text == std::string_view(b); }
  /// By text.
  friend std::strong_ordering operator<=>(Name a, Name b) { return a.entry_->text <=> b.entry_->text; }

  struct Entry {
    std::string text;
    std::uint32_t number = 0;
  };

 private:
  static const Entry kEmpty;
  const Entry* entry_;
};

}  // namespace tenon::ir

template <>
struct fmt::formatter<tenon::ir::Name> : fmt::formatter<std::string_view> {
  auto format(tenon::ir::Name name, fmt::format_context& context) const { return fmt::formatter<std::string_view>::format(name, context); }
};
