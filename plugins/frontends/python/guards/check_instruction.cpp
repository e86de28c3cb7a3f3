#include <algorithm>

#include "python/guards/check_instruction.h"

namespace tenon::python {

bool is_relation(GuardKind kind) {
  return kind == GuardKind::number_missing || kind == GuardKind::number_present || kind == GuardKind::same_object || kind == GuardKind::different_object || kind == GuardKind::distinct || kind == GuardKind::numbers;
}

namespace {

/// Whether a guard's truth cannot change while the dict that holds its value has not changed. An object's type can, unless it is a
/// built-in one.
bool pinned_by_container(const Guard& guard) {
  if (guard.kind == GuardKind::type_is) return !PyType_HasFeature(reinterpret_cast<PyTypeObject*>(guard.expected.get()), Py_TPFLAGS_HEAPTYPE);
  return guard.kind == GuardKind::identity || guard.kind == GuardKind::constant;
}

bool on_dict_contents(GuardKind kind) {
  return kind == GuardKind::dict_keys || kind == GuardKind::key_missing || kind == GuardKind::key_present;
}

class CheckCompiler {
 public:
  CheckCompiler(const SourceTable& sources, const std::vector<Guard>& guards, std::span<const SourceId> wanted)
      : sources_(sources), guards_(guards), children_(sources.size()), on_source_(sources.size()), needed_(sources.size()) {
    for (SourceId id : wanted) need(id);
    for (std::uint32_t at = 0; at < guards.size(); ++at) {
      need(guards[at].source);
      need(guards[at].other);
      for (SourceId id : guards[at].others) need(id);
      if (guards[at].place)
        for (SourceId number : guards[at].place->numbers) need(number);
      on_source_[guards[at].source.value].push_back(at);
    }
    for (std::uint32_t id = 1; id < sources.size(); ++id)
      if (needed_[id] && source(id).parent && source(id).kind != SourceKind::chosen_item) children_[source(id).parent.value].push_back(id);
  }

  std::vector<CheckInstruction> compile() {
    // What a caller gives differs most often: a call that does not fit is turned away before the state of modules is looked at.
    for (const bool constants : {false, true})
      for (std::uint32_t id = 1; id < sources_.size(); ++id)
        if (needed_[id] && !source(id).parent && (source(id).kind == SourceKind::constant) == constants) emit_root(id);
    // What numbers choose comes when they are known: sources that are made of it have greater numbers.
    for (std::uint32_t id = 1; id < sources_.size(); ++id)
      if (needed_[id] && source(id).kind == SourceKind::chosen_item) emit_root(id);
    for (std::uint32_t at = 0; at < guards_.size(); ++at)
      if (is_relation(guards_[at].kind)) emit_check(at);  // when both sides are known
    return std::move(code_);
  }

 private:
  const Source& source(std::uint32_t id) const { return sources_[SourceId{id}]; }

  void need(SourceId id) {
    for (; id && !needed_[id.value]; id = sources_[id].parent) {
      needed_[id.value] = true;
      if (sources_[id].place)
        for (SourceId number : sources_[id].place->numbers) need(number);
    }
  }

  void emit_root(std::uint32_t id) {
    if (source(id).kind != SourceKind::constant) emit_fetch(id);
    emit(id);
  }

  void emit_check(std::uint32_t at) {
    const Guard& guard = guards_[at];
    CheckInstruction check{.op = CheckOp::check, .source = guard.source.value, .guard = at, .object = guard.expected.get(), .number = guard.number};
    if (guard.kind == GuardKind::type_is) check.op = CheckOp::check_type;
    if (guard.kind == GuardKind::identity) check.op = CheckOp::check_identity;
    if (guard.kind == GuardKind::length && is_dict(guard.source)) check.op = CheckOp::check_dict_size;
    code_.push_back(check);
  }

  /// Whether a guard says that the values of this source are dicts.
  bool is_dict(SourceId id) const {
    for (std::uint32_t at : on_source_[id.value])
      if (guards_[at].kind == GuardKind::type_is) return PyType_FastSubclass(reinterpret_cast<PyTypeObject*>(guards_[at].expected.get()), Py_TPFLAGS_DICT_SUBCLASS);
    return false;
  }

  void emit_fetch(std::uint32_t id) {
    const Source& wanted = source(id);
    CheckInstruction fetch{.op = CheckOp::fetch, .source = id, .jump = wanted.parent.value, .object = wanted.key.get(), .number = wanted.index};
    if (wanted.kind == SourceKind::argument) fetch.op = CheckOp::fetch_argument;
    if (wanted.kind == SourceKind::instance_dict) fetch.op = CheckOp::fetch_instance_dict;
    if (wanted.kind == SourceKind::dict_item) fetch.op = CheckOp::fetch_dict_item;
    code_.push_back(fetch);
    for (std::uint32_t guard : on_source_[id])
      if (pinned_by_container(guards_[guard])) emit_check(guard);
  }

  /// The value of `id` is in its register: its remaining guards, then all that hangs below it.
  void emit(std::uint32_t id) {
    emit_own_checks(id);
    const auto in_dict = [&](std::uint32_t child) { return source(child).kind == SourceKind::dict_item; };
    const auto with_kind = [&](auto wanted) { return std::ranges::any_of(on_source_[id], [&](std::uint32_t guard) { return wanted(guards_[guard].kind); }); };
    if (with_kind(is_on_class)) emit_gated(id, CheckOp::type_gate, CheckOp::type_stamp, [&] {
      for (std::uint32_t guard : on_source_[id])
        if (is_on_class(guards_[guard].kind)) emit_check(guard);
    });
    if (std::ranges::any_of(children_[id], in_dict) || with_kind(on_dict_contents)) emit_gated(id, CheckOp::dict_gate, CheckOp::dict_stamp, [&] {
      for (std::uint32_t guard : on_source_[id])
        if (on_dict_contents(guards_[guard].kind)) emit_check(guard);
      for (std::uint32_t child : children_[id])
        if (in_dict(child)) emit_fetch(child);
    });
    for (std::uint32_t child : children_[id])
      if (!in_dict(child)) emit_fetch(child);
    for (std::uint32_t child : children_[id]) emit(child);
  }

  /// What stands neither behind a gate nor in a relation, and was not checked when the value was fetched.
  void emit_own_checks(std::uint32_t id) {
    const bool constant = source(id).kind == SourceKind::constant;  // always there, but of a type that may change
    for (std::uint32_t at : on_source_[id]) {
      const Guard& guard = guards_[at];
      const bool done = pinned_by_container(guard) && !(constant && guard.kind == GuardKind::type_is);
      if (!done && !on_dict_contents(guard.kind) && !is_on_class(guard.kind) && !is_relation(guard.kind)) emit_check(at);
    }
  }

  template <class Inside>
  void emit_gated(std::uint32_t id, CheckOp gate, CheckOp stamp, Inside inside) {
    const std::uint32_t number = stamps_++;
    const std::size_t first = code_.size();
    code_.push_back({.op = gate, .source = id, .stamp = number});
    inside();
    code_.push_back({.op = stamp, .source = id, .stamp = number});
    code_[first].jump = static_cast<std::uint32_t>(code_.size());
  }

  const SourceTable& sources_;
  const std::vector<Guard>& guards_;
  std::vector<std::vector<std::uint32_t>> children_;   // by source; only those that are needed
  std::vector<std::vector<std::uint32_t>> on_source_;  // guards by source
  std::vector<bool> needed_;
  std::vector<CheckInstruction> code_;
  std::uint32_t stamps_ = 0;
};

}  // namespace

std::vector<CheckInstruction> compile_checks(const SourceTable& sources, const std::vector<Guard>& guards, std::span<const SourceId> wanted) {
  return CheckCompiler(sources, guards, wanted).compile();
}

}  // namespace tenon::python
