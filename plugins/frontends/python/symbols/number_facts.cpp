#include "python/symbols/number_facts.h"

#include <algorithm>
#include <utility>

namespace tenon::python {

bool NumberHistory::varies(const std::string& name, std::int64_t value) {
  const auto [entry, fresh] = x_numbers.try_emplace(name, Seen{value, false});
  if (fresh) return false;
  entry->second.varies |= entry->second.value != value;
  entry->second.value = value;
  return entry->second.varies;
}

std::size_t NumberFacts::position(const std::string& name) {
  const auto [entry, fresh] = x_positions.try_emplace(name, x_names.size());
  if (fresh) {
    x_names.push_back(name);
    x_facts.emplace_back();
  }
  return entry->second;
}

bool NumberFacts::fix(std::size_t name) { return !std::exchange(x_facts[name].fixed, true); }

bool NumberFacts::define(std::size_t name, ir::Dim value) {
  if (x_facts[name].definition) return fix(name);
  x_facts[name].definition = std::move(value);
  return true;
}

bool NumberFacts::narrow(std::size_t name, Range range) {
  Range& known = x_facts[name].range;
  const Range both{std::max(known.least, range.least), std::min(known.most, range.most)};
  const bool news = both.least != known.least || both.most != known.most;
  known = both;
  return news;
}

bool NumberFacts::fix_all() { return !std::exchange(x_all_fixed, true); }

}  // namespace tenon::python
