#include "rule_set.h"

namespace tenon::simplify {
namespace {

using namespace rewrite;

/// Nothing where the device is another, since the types do not fit then; a value is the same in any memory.
Rule copy_rule(std::string_view name, Pattern pattern) { return {name, std::move(pattern), first_slot}; }

}  // namespace

RuleSet copy_rules() {
  const Pattern copy = op("to_device", {any(0)}).with_attributes();
  return {
      // to_device(x, the device of x) = x
      copy_rule("to_device_same", copy),
      // to_device(to_device(x, a), the device of x) = x
      copy_rule("to_device_back", op("to_device", {copy}).with_attributes()),
  };
}

}  // namespace tenon::simplify
