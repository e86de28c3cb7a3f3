#include "mutant.h"

#include <algorithm>

#include "core/base/error.h"

namespace tenon::mutants {
namespace {

std::vector<Mutant> all_mutants() {
  std::vector<Mutant> all{{.name = "none"}};
  for (const auto& some : {value_faults(), memory_faults(), state_faults(), graph_faults(), contract_faults()})
    all.insert(all.end(), some.begin(), some.end());
  return all;
}

/// The text behind "mutant": in a JSON object.
std::string named_in(const std::string& options) {
  const auto key = options.find("\"mutant\"");
  if (key == std::string::npos) return "none";
  const auto open = options.find('"', key + 8);
  const auto close = options.find('"', open + 1);
  return options.substr(open + 1, close - open - 1);
}

}  // namespace

const Mutant& chosen_mutant(const std::string& options) {
  static const std::vector<Mutant> all = all_mutants();
  const std::string name = named_in(options);
  const auto found = std::find_if(all.begin(), all.end(), [&](const Mutant& mutant) { return mutant.name == name; });
  if (found != all.end()) return *found;
  std::string known;
  for (const Mutant& mutant : all) known += " " + mutant.name;
  throw Exception(Code::not_found, "no such mutant; known:" + known);
}

}  // namespace tenon::mutants
