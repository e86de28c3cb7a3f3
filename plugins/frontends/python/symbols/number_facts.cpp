#include "python/symbols/number_facts.h"

#include <algorithm>
#include <utility>

namespace tenon::python {

bool NumberHistory::varies(const std::string& name, std::int64_t value) {
  const auto [entry, fresh] = numbers_.try_emplace(name, Seen{value, false, {value, value}});
  if (fresh) return false;
  Seen& seen = entry->second;
  seen.varies |= seen.value != value;
  seen.value = value;
  seen.span = {std::min(seen.span.least, value), std::max(seen.span.most, value)};
  return seen.varies;
}

bool NumberHistory::wears_out(const std::string& name) {
  constexpr std::size_t kMostValues = 4;
  const auto seen = numbers_.find(name);
  if (!may_break || seen == numbers_.end()) return false;
  if (splits) return true;
  const std::int64_t value = seen->second.value;
  std::set<std::int64_t>& taken = taken_[name];
  if (taken.size() < kMostValues) taken.insert(value);
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
