#include "python/symbols/number_facts.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace tenon::python {

bool NumberHistory::varies(const std::string& name, std::int64_t value) {
  const auto [entry, fresh] = numbers_.try_emplace(name, Seen{value, false, {value, value}});
  Seen& seen = entry->second;
  if (fresh) {
    seen.varies = is_below_varying(name);
    if (seen.varies && value == 0) seen.span.most = 1;  // what is drawn will not be 0 each time
    return seen.varies;
  }
  seen.varies |= seen.value != value;
  seen.value = value;
  seen.span = {std::min(seen.span.least, value), std::max(seen.span.most, value)};
  return seen.varies;
}

namespace {

constexpr std::size_t kMostValues = 4;  // of a number, and changes of a sequence, that are variants each
constexpr std::size_t kMostInCalls = 2; // of a number that the library may be given, too

/// Whether a source is a sequence, an item of it, or what an iterator has to give.
bool is_of(std::string_view source, std::string_view sequence) {
  const std::size_t at = source.find(sequence);
  if (at == std::string_view::npos) return false;
  const std::string_view before = source.substr(0, at), after = source.substr(at + sequence.size());
  return (before.empty() || before.ends_with(" ") || before.ends_with("(")) && (after.empty() || after.starts_with("[") || after.starts_with(",") || after.starts_with(")"));
}

}  // namespace

bool NumberHistory::is_below_varying(std::string_view name) const {
  return std::ranges::any_of(varying_, [&](std::string_view source) {
    if (!name.starts_with(source)) return false;
    const std::string_view rest = name.substr(source.size());
    const bool of_tensor = rest.find(".shape[") != rest.npos || rest.find(".stride(") != rest.npos;
    return !of_tensor && (rest.empty() || rest.starts_with('[') || rest.starts_with('.'));
  });
}

bool NumberHistory::items_keep_varying(const std::string& sequence) const {
  if (!may_break) return false;
  std::size_t changes = 0;
  for (const auto& [source, count] : changes_) changes += is_of(source, sequence) ? count : 0;
  return changes >= kMostValues;
}

bool NumberHistory::constants_wear_out() const { return constants_ >= kMostValues; }

bool NumberHistory::wears_out(const std::string& name) {
  if (!may_break || !numbers_.contains(name)) return false;
  return splits || takes_many(name);
}

bool NumberHistory::takes_many(const std::string& name) { return takes_more_than(name, kMostValues); }

bool NumberHistory::takes_several(const std::string& name) { return takes_more_than(name, kMostInCalls); }

bool NumberHistory::takes_more_than(const std::string& name, std::size_t most) {
  const auto seen = numbers_.find(name);
  if (seen == numbers_.end()) return false;
  const std::int64_t value = seen->second.value;
  std::set<std::int64_t>& taken = taken_[name];
  if (taken.size() < most) taken.insert(value);
  return !taken.contains(value);
}

std::size_t NumberFacts::position(const std::string& name) {
  const auto [entry, fresh] = positions_.try_emplace(name, names_.size());
  if (fresh) {
    names_.push_back(name);
    facts_.emplace_back();
  }
  return entry->second;
}

bool NumberFacts::fix(std::size_t name) { return !std::exchange(facts_[name].fixed, true); }

bool NumberFacts::define(std::size_t name, ir::Dim value) {
  if (facts_[name].definition) return fix(name);
  facts_[name].definition = std::move(value);
  return true;
}

std::size_t NumberFacts::name_expression(const std::string& words, ir::Dim value) {
  const std::size_t name = position(words);
  facts_[name].expression = std::move(value);
  return name;
}

bool NumberFacts::narrow(std::size_t name, Range range) {
  Range& known = facts_[name].range;
  const Range both{std::max(known.least, range.least), std::min(known.most, range.most)};
  const bool news = both.least != known.least || both.most != known.most;
  known = both;
  return news;
}

bool NumberFacts::fix_all() { return !std::exchange(all_fixed_, true); }

}  // namespace tenon::python
