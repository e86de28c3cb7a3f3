#include "python/guards/later_check.h"

#include <utility>

namespace tenon::python {

std::shared_ptr<LaterCheck> LaterCheck::of(const SourceTable& sources, const GuardSet& guards) {
  if (guards.readers().empty()) return nullptr;
  std::vector<Guard> again = guards.read_again();
  const bool compares = !again.empty();
  if (!compares && guards.keepers().empty()) return nullptr;
  return std::shared_ptr<LaterCheck>(new LaterCheck(CheckProgram(sources.closed_copy(), std::move(again)), compares, guards));
}

std::optional<GuardFailure> LaterCheck::failure() {
  if (!compares_) return std::nullopt;
  const CallArguments none;
  std::optional<GuardFailure> failure;
  if (!program_.check(none)) failure = program_.explain(none);
  program_.let_go();
  return failure;
}

int LaterCheck::traverse(visitproc visit, void* arg) const {
  for (const std::vector<Ref>* functions : {&readers_, &keepers_})
    for (const Ref& function : *functions) Py_VISIT(function.get());
  return program_.traverse(visit, arg);
}

}  // namespace tenon::python
