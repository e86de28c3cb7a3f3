#include "core/guards/check.h"

#include "core/base/error.h"

namespace tenon::guards {
namespace {

constexpr const char* kOperators[] = {"==", "!=", "<", "<=", "is a multiple of"};

/// A list of sizes, with a star for one that may be anything.
std::string sizes_text(const Fact& sizes) {
  const auto* list = std::get_if<FactList>(&sizes.value);
  if (!list) return sizes.to_string();
  std::string text;
  for (const Fact& f : *list) text += (text.empty() ? "" : ", ") + (f.is_none() ? "*" : f.to_string());
  return "[" + text + "]";
}

std::string plain(const Fact& f) {
  const auto* text = std::get_if<std::string>(&f.value);
  return text ? *text : f.to_string();
}

std::string others_text(const SourceTable& sources, const Check& check) {
  std::string text;
  for (SourceId s : check.others) text += (text.empty() ? "" : ", ") + sources.describe(s);
  return text;
}

std::string relation_text(const SourceTable& sources, const Check& check) {
  const auto name = [&](SymbolId s) { return s.value < check.others.size() ? sources.describe(check.others[s.value]) : fmt::format("s{}", s.value); };
  const Relation& r = *check.relation;
  return fmt::format("{} {} {}", r.left.to_string(name), kOperators[static_cast<std::size_t>(r.op)], r.right.to_string(name));
}

/// The first dimension in which two lists of the same length differ; none for lists that differ in length.
std::optional<std::size_t> differing_dimension(const Fact& expected, const Fact& found) {
  const auto *a = std::get_if<FactList>(&expected.value), *b = std::get_if<FactList>(&found.value);
  if (!a || !b || a->size() != b->size()) return std::nullopt;
  for (std::size_t i = 0; i < a->size(); ++i)
    if (!(*a)[i].is_none() && !((*a)[i] == (*b)[i])) return i;
  return std::nullopt;
}

std::string explain_sizes(const std::string& what, const Check& check, const Fact& found) {
  const auto i = differing_dimension(check.expected, found);
  if (!i) return fmt::format("{} was {}, is {}", what, sizes_text(check.expected), sizes_text(found));
  return fmt::format("{}[{}] was {}, is {}", what, *i, std::get<FactList>(check.expected.value)[*i].to_string(), std::get<FactList>(found.value)[*i].to_string());
}

}  // namespace

bool Relation::holds(std::span<const std::int64_t> symbols) const {
  try {
    const std::int64_t a = left.evaluate(symbols), b = right.evaluate(symbols);
    switch (op) {
      case Operator::equal: return a == b;
      case Operator::not_equal: return a != b;
      case Operator::less: return a < b;
      case Operator::less_equal: return a <= b;
      case Operator::multiple_of: return b == -1 || (b != 0 && a % b == 0);
    }
  } catch (const Exception&) {
  }
  return false;
}

std::string describe(const SourceTable& sources, const Check& check) {
  const std::string s = check.source ? sources.describe(check.source) : "";
  const std::string expected = check.expected.to_string();
  switch (check.kind) {
    case CheckKind::exists: return s + " exists";
    case CheckKind::type: return "type(" + s + ") is " + expected;
    case CheckKind::identity: return s + " is " + expected;
    case CheckKind::constant:
    case CheckKind::global_state: return s + " == " + expected;
    case CheckKind::length: return "len(" + s + ") == " + expected;
    case CheckKind::keys: return "list(" + s + ") == " + expected;
    case CheckKind::has_key: return expected + " in " + s;
    case CheckKind::lacks_key: return expected + " not in " + s;
    case CheckKind::dtype: return s + ".dtype == " + plain(check.expected);
    case CheckKind::shape: return s + ".shape == " + sizes_text(check.expected);
    case CheckKind::strides: return s + ".strides == " + sizes_text(check.expected);
    case CheckKind::device: return s + ".device == " + plain(check.expected);
    case CheckKind::requires_grad: return s + ".requires_grad == " + expected;
    case CheckKind::same_object: return s + " is " + others_text(sources, check);
    case CheckKind::distinct: return s + ", " + others_text(sources, check) + " are different objects";
    case CheckKind::relation: return relation_text(sources, check);
    case CheckKind::other: return s + ": " + plain(check.expected);
  }
  return s;
}

std::string explain(const SourceTable& sources, const Check& check, const Fact& found) {
  const std::string s = check.source ? sources.describe(check.source) : "";
  const auto changed = [&](const std::string& what) { return fmt::format("{} was {}, is {}", what, plain(check.expected), plain(found)); };
  switch (check.kind) {
    case CheckKind::exists: return s + " no longer exists";
    case CheckKind::type: return changed("type(" + s + ")");
    case CheckKind::identity: return fmt::format("{} was {}, is another object: {}", s, plain(check.expected), plain(found));
    case CheckKind::constant:
    case CheckKind::global_state: return fmt::format("{} was {}, is {}", s, check.expected.to_string(), found.to_string());
    case CheckKind::length: return changed("len(" + s + ")");
    case CheckKind::keys: return changed("list(" + s + ")");
    case CheckKind::has_key: return fmt::format("{} was in {}, is not", check.expected.to_string(), s);
    case CheckKind::lacks_key: return fmt::format("{} was not in {}, is now", check.expected.to_string(), s);
    case CheckKind::dtype: return changed(s + ".dtype");
    case CheckKind::shape: return explain_sizes(s + ".shape", check, found);
    case CheckKind::strides: return explain_sizes(s + ".strides", check, found);
    case CheckKind::device: return changed(s + ".device");
    case CheckKind::requires_grad: return changed(s + ".requires_grad");
    case CheckKind::same_object: return fmt::format("{} and {} were one object, are no longer", s, others_text(sources, check));
    case CheckKind::distinct: return fmt::format("{} were different objects, are no longer", s + ", " + others_text(sources, check));
    case CheckKind::relation: return relation_text(sources, check) + " no longer holds";
    case CheckKind::other: return fmt::format("{}: was {}, is {}", s, plain(check.expected), plain(found));
  }
  return s;
}

}  // namespace tenon::guards
