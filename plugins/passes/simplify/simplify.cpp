#include "simplify.h"

#include "rule_set.h"

namespace tenon::simplify {
namespace {

RuleSet all_rules() {
  RuleSet all;
  for (RuleSet set : {arithmetic_rules(), integer_rules(), logic_rules(), rounding_rules(), norm_rules(), pool_rules(), copy_rules()})
    std::move(set.begin(), set.end(), std::back_inserter(all));
  return all;
}

}  // namespace

void simplify(ir::Graph& graph, const PassContext&) {
  static const RuleSet rules = all_rules();
  rewrite::for_each_graph(graph, [](ir::Graph& g) { rewrite::apply_rules(g, rules); });
}

}  // namespace tenon::simplify
