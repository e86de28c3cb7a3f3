#include "python/stand_ins/stand_in_uses.h"

#include "python/objects/graph_break.h"

namespace tenon::python {
namespace {

thread_local StandInUses* t_uses = nullptr;

}  // namespace

StandInUses::StandInUses() : outer_(t_uses) { t_uses = this; }
StandInUses::~StandInUses() { t_uses = outer_; }

StandInUses& StandInUses::active() {
  if (!t_uses) throw GraphBreak("a stand-in of a tensor was used after its capture had ended");
  return *t_uses;
}

}  // namespace tenon::python
