#include "canonical.h"

#include "rule_set.h"

namespace tenon::canonical {
namespace {

RuleSet all_rules() {
  RuleSet all;
  for (RuleSet set : {view_rules(), cast_rules(), mask_rules(), operand_rules()}) std::move(set.begin(), set.end(), std::back_inserter(all));
  return all;
}

}  // namespace

void canonical(ir::Graph& graph, const PassContext&) {
  static const RuleSet rules = all_rules();
  rewrite::for_each_graph(graph, [](ir::Graph& g) { rewrite::apply_rules(g, rules); });
}

}  // namespace tenon::canonical
