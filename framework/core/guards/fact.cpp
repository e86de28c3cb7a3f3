#include "core/guards/fact.h"

#include <bit>

#include "core/ir/printer.h"

namespace tenon::guards {

bool operator==(const Fact& a, const Fact& b) {
  const double *x = std::get_if<double>(&a.value), *y = std::get_if<double>(&b.value);
  if (x && y) return std::bit_cast<std::uint64_t>(*x) == std::bit_cast<std::uint64_t>(*y);
  return a.value == b.value;
}

std::string Fact::to_string() const {
  struct Visitor {
    std::string operator()(std::monostate) const { return "None"; }
    std::string operator()(bool b) const { return b ? "True" : "False"; }
    std::string operator()(std::int64_t i) const { return std::to_string(i); }
    std::string operator()(double d) const { return ir::print_float(d); }
    std::string operator()(const std::string& s) const { return ir::print_string(s); }
    std::string operator()(const ObjectKey& o) const { return o.text; }
    std::string operator()(const FactList& list) const {
      std::string text;
      for (const Fact& f : list) text += (text.empty() ? "" : ", ") + f.to_string();
      return "[" + text + "]";
    }
  };
  return std::visit(Visitor{}, value);
}

}  // namespace tenon::guards
