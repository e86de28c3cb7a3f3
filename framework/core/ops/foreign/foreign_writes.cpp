#include "core/ops/foreign/foreign_writes.h"

#include <utility>

namespace tenon::ops {
namespace {

thread_local ForeignWrites* t_taken = nullptr;

}  // namespace

ForeignWrites::ForeignWrites() : outer_(std::exchange(t_taken, this)) {}
ForeignWrites::~ForeignWrites() { t_taken = outer_; }

void write_back(ForeignArguments& arguments, std::string_view parameter, ir::ValueId value, bool counted) {
  const auto* before = arguments[parameter].as<ir::ValueId>();
  if (!t_taken || !before) throw Exception(error(Code::unsupported, "a call that writes into its argument '{}'", parameter));
  t_taken->all.push_back({*before, arguments.builder().cast(value, arguments.type(*before).dtype), counted});
}

}  // namespace tenon::ops
