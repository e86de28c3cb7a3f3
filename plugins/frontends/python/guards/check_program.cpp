#include "python/guards/check_program.h"

#include <fmt/format.h>

#include <algorithm>

#include "python/compat/object_layout.h"
#include "python/compat/self_test.h"
#include "python/evaluator/graph_break.h"
#include "python/guards/object_checks.h"
#include "python/heap/dict_access.h"
#include "python/heap/iterators.h"

namespace tenon::python {
namespace {

constexpr std::uint32_t kNone = ~0u;

enum class Step : std::uint8_t {
  fetch,                // value of a source into its register; fails when it is not there
  fetch_argument,       // the commonest fetches, with all they need in the instruction
  fetch_instance_dict,
  fetch_dict_item,
  check,                // one guard on a register
  check_type,           // the commonest checks
  check_identity,
  check_dict_size,
  dict_gate,  // while the dict's version is the stamped one, all fetches and checks up to `jump` hold: go there
  dict_stamp,
  type_gate,  // the same for the attributes of a type
  type_stamp,
};

struct Instruction {
  Step step;
  std::uint32_t source = 0;     // also its register
  std::uint32_t guard = kNone;  // checks
  std::uint32_t jump = 0;       // gates: the instruction to go to; fetches: the parent's register
  std::uint32_t stamp = 0;      // gates and stamps: index of the stamp
  PyObject* object = nullptr;   // key of a dict item; expected type or object (borrowed from the guard or source)
  std::int64_t number = 0;      // position of an argument; expected size
};

struct Stamp {
  const void* object = nullptr;
  std::uint64_t version = 0;
};

/// Whether a guard's truth cannot change while the dict that holds its value has not changed. An object's type can, unless it is a
/// built-in one.
bool pinned_by_container(const Guard& guard) {
  if (guard.kind == GuardKind::type_is) return !PyType_HasFeature(reinterpret_cast<PyTypeObject*>(guard.expected.get()), Py_TPFLAGS_HEAPTYPE);
  return guard.kind == GuardKind::identity || guard.kind == GuardKind::constant;
}

bool is_relation(GuardKind kind) {
  return kind == GuardKind::same_object || kind == GuardKind::different_object || kind == GuardKind::distinct || kind == GuardKind::numbers;
}

bool on_dict_contents(GuardKind kind) {
  return kind == GuardKind::dict_keys || kind == GuardKind::key_missing || kind == GuardKind::key_present;
}

}  // namespace

struct CheckProgram::Body {
  SourceTable sources;
  std::vector<Guard> guards;
  std::size_t positional = 0;
  Ref keyword_names;

  const bool trust_versions = compat::versions_work();
  std::vector<Instruction> code;
  std::vector<Stamp> stamps;
  std::vector<PyObject*> registers;  // by source; kept between calls, valid while the gate before their fetch holds
  std::vector<Ref> temporaries;      // values that nobody else keeps alive
  std::vector<PyObject*> distinct;       // scratch
  std::vector<PyObject*> seen_distinct;  // addresses that were pairwise different at the last call

  std::vector<std::vector<std::uint32_t>> children;  // by source; only those that are needed
  std::vector<std::vector<std::uint32_t>> on_source;  // guards by source

  explicit Body(SourceTable table) : sources(std::move(table)) {}

  const Source& source(std::uint32_t id) const { return sources[SourceId{id}]; }

  // ---- building
  void build(std::span<const SourceId> wanted) {
    const std::size_t count = sources.size();
    registers.assign(count, nullptr);
    children.resize(count);
    on_source.resize(count);
    std::vector<bool> needed(count);
    const auto need = [&](SourceId id) {
      for (; id && !needed[id.value]; id = sources[id].parent) needed[id.value] = true;
    };
    for (SourceId id : wanted) need(id);
    for (std::uint32_t i = 0; i < guards.size(); ++i) {
      need(guards[i].source);
      need(guards[i].other);
      for (SourceId id : guards[i].others) need(id);
      on_source[guards[i].source.value].push_back(i);
    }
    for (std::uint32_t id = 1; id < count; ++id) {
      if (!needed[id]) continue;
      if (source(id).kind == SourceKind::constant) registers[id] = source(id).key.get();
      if (source(id).parent) children[source(id).parent.value].push_back(id);
    }
    for (std::uint32_t id = 1; id < count; ++id) {
      if (!needed[id] || source(id).parent) continue;
      if (source(id).kind == SourceKind::argument || source(id).kind == SourceKind::handled_exception) emit_fetch(id);
      emit(id);
    }
    emit_relations();
    children.clear();
    on_source.clear();
  }

  void emit_check(std::uint32_t at) {
    const Guard& guard = guards[at];
    Instruction check{.step = Step::check, .source = guard.source.value, .guard = at, .object = guard.expected.get(), .number = guard.number};
    if (guard.kind == GuardKind::type_is) check.step = Step::check_type;
    if (guard.kind == GuardKind::identity) check.step = Step::check_identity;
    if (guard.kind == GuardKind::length && is_dict(guard.source)) check.step = Step::check_dict_size;
    code.push_back(check);
  }

  /// Whether a guard says that the values of this source are dicts.
  bool is_dict(SourceId id) const {
    for (std::uint32_t at : on_source[id.value])
      if (guards[at].kind == GuardKind::type_is) return PyType_FastSubclass(reinterpret_cast<PyTypeObject*>(guards[at].expected.get()), Py_TPFLAGS_DICT_SUBCLASS);
    return false;
  }

  void emit_fetch(std::uint32_t id) {
    const Source& wanted = source(id);
    Instruction fetch{.step = Step::fetch, .source = id, .jump = wanted.parent.value, .object = wanted.key.get(), .number = wanted.index};
    if (wanted.kind == SourceKind::argument) fetch.step = Step::fetch_argument;
    if (wanted.kind == SourceKind::instance_dict) fetch.step = Step::fetch_instance_dict;
    if (wanted.kind == SourceKind::dict_item) fetch.step = Step::fetch_dict_item;
    code.push_back(fetch);
    for (std::uint32_t guard : on_source[id])
      if (pinned_by_container(guards[guard])) emit_check(guard);
  }

  /// The value of `id` is in its register: its remaining guards, then all that hangs below it.
  void emit(std::uint32_t id) {
    bool dict_contents = false, type_attributes = false;
    for (std::uint32_t guard : on_source[id]) {
      const GuardKind kind = guards[guard].kind;
      dict_contents |= on_dict_contents(kind);
      type_attributes |= kind == GuardKind::type_attribute;
      const bool now = !pinned_by_container(guards[guard]) && !on_dict_contents(kind) && kind != GuardKind::type_attribute &&
                       !is_relation(kind);
      if (now) emit_check(guard);
    }
    if (type_attributes) emit_gated(id, Step::type_gate, Step::type_stamp, [&] {
      for (std::uint32_t guard : on_source[id])
        if (guards[guard].kind == GuardKind::type_attribute) emit_check(guard);
    });
    const auto in_dict = [&](std::uint32_t child) { return source(child).kind == SourceKind::dict_item; };
    const bool dict_items = std::any_of(children[id].begin(), children[id].end(), in_dict);
    if (dict_contents || dict_items) emit_gated(id, Step::dict_gate, Step::dict_stamp, [&] {
      for (std::uint32_t guard : on_source[id])
        if (on_dict_contents(guards[guard].kind)) emit_check(guard);
      for (std::uint32_t child : children[id])
        if (in_dict(child)) emit_fetch(child);
    });
    for (std::uint32_t child : children[id])
      if (!in_dict(child)) emit_fetch(child);
    for (std::uint32_t child : children[id]) emit(child);
  }

  template <class Inside>
  void emit_gated(std::uint32_t id, Step gate, Step stamp, Inside inside) {
    const std::uint32_t number = static_cast<std::uint32_t>(stamps.size());
    const std::size_t first = code.size();
    stamps.emplace_back();
    code.push_back({.step = gate, .source = id, .stamp = number});
    inside();
    code.push_back({.step = stamp, .source = id, .stamp = number});
    code[first].jump = static_cast<std::uint32_t>(code.size());
  }

  /// Guards that compare two sources come when both are known.
  void emit_relations() {
    for (std::uint32_t i = 0; i < guards.size(); ++i)
      if (is_relation(guards[i].kind)) emit_check(i);
  }

  // ---- running
  PyObject* keep(PyObject* fresh) noexcept {
    if (fresh == nullptr) {
      PyErr_Clear();
      return nullptr;
    }
    temporaries.push_back(Ref::steal(fresh));
    return fresh;
  }

  PyObject* fetch(const Source& wanted, const CallArguments& call) noexcept {
    if (wanted.kind == SourceKind::argument) return call.values[wanted.index];
    PyObject* parent = registers[wanted.parent.value];
    switch (wanted.kind) {
      case SourceKind::constant: return wanted.key.get();
      case SourceKind::instance_dict: return compat::instance_dict(parent);
      case SourceKind::dict_item: return PyDict_Check(parent) ? checks::dict_get(parent, wanted.key.get()) : nullptr;
      case SourceKind::list_item:
        return PyList_Check(parent) && wanted.index < PyList_GET_SIZE(parent) ? PyList_GET_ITEM(parent, wanted.index) : nullptr;
      case SourceKind::tuple_item:
        return PyTuple_Check(parent) && wanted.index < PyTuple_GET_SIZE(parent) ? PyTuple_GET_ITEM(parent, wanted.index) : nullptr;
      case SourceKind::sequence_item: return keep(PySequence_GetItem(parent, wanted.index));
      case SourceKind::member: {
        PyObject* descriptor = wanted.key.get();
        return keep(Py_TYPE(descriptor)->tp_descr_get(descriptor, parent, reinterpret_cast<PyObject*>(Py_TYPE(parent))));
      }
      case SourceKind::attribute: return keep(PyObject_GetAttr(parent, wanted.key.get()));
      case SourceKind::type_attribute:
        return PyType_Check(parent) ? compat::type_lookup(reinterpret_cast<PyTypeObject*>(parent), wanted.key.get()) : nullptr;
      case SourceKind::function_defaults: return PyFunction_Check(parent) ? PyFunction_GET_DEFAULTS(parent) : nullptr;
      case SourceKind::function_kwdefaults: return PyFunction_Check(parent) ? PyFunction_GET_KW_DEFAULTS(parent) : nullptr;
      case SourceKind::function_closure: return PyFunction_Check(parent) ? PyFunction_GET_CLOSURE(parent) : nullptr;
      case SourceKind::cell_contents: return PyCell_Check(parent) ? PyCell_GET(parent) : nullptr;
      case SourceKind::method_function: return PyMethod_Check(parent) ? PyMethod_GET_FUNCTION(parent) : nullptr;
      case SourceKind::method_self:
        if (PyMethod_Check(parent)) return PyMethod_GET_SELF(parent);
        return PyCFunction_Check(parent) ? PyCFunction_GET_SELF(parent) : nullptr;
      case SourceKind::weak_target: {
        PyObject* target = PyWeakref_Check(parent) ? PyWeakref_GET_OBJECT(parent) : nullptr;
        return target;
      }
      case SourceKind::upcoming: return keep(upcoming_item(parent, wanted.index).release());
      case SourceKind::handled_exception: {
        PyObject* handled = PyErr_GetHandledException();
        return keep(handled ? handled : Py_NewRef(Py_None));
      }
      case SourceKind::argument: break;
    }
    return nullptr;
  }

  bool distinct_holds(const Guard& guard) noexcept {
    // Mostly the objects of the last call are there again, and were distinct then.
    bool as_before = seen_distinct.size() == guard.others.size();
    for (std::size_t at = 0; as_before && at < seen_distinct.size(); ++at) as_before = seen_distinct[at] == registers[guard.others[at].value];
    if (as_before) return true;
    seen_distinct.clear();
    distinct.clear();
    for (SourceId id : guard.others) distinct.push_back(registers[id.value]);
    std::sort(distinct.begin(), distinct.end());
    if (std::adjacent_find(distinct.begin(), distinct.end()) != distinct.end()) return false;
    for (SourceId id : guard.others) seen_distinct.push_back(registers[id.value]);
    return true;
  }

  bool holds(const Guard& guard) noexcept {
    PyObject* value = registers[guard.source.value];
    PyObject* expected = guard.expected.get();
    switch (guard.kind) {
      case GuardKind::type_is: return Py_TYPE(value) == reinterpret_cast<PyTypeObject*>(expected);
      case GuardKind::identity: return value == expected;
      case GuardKind::constant: return same_constant(value, expected);
      case GuardKind::length: return checks::length_of(value) == guard.number;
      case GuardKind::dict_keys: return PyDict_Check(value) && checks::same_keys(value, expected);
      case GuardKind::key_missing: return PyDict_Check(value) && checks::dict_get(value, expected) == nullptr;
      case GuardKind::key_present: return PyDict_Check(value) && checks::dict_get(value, expected) != nullptr;
      case GuardKind::set_items: return checks::same_items_of_set(value, expected);
      case GuardKind::same_object: return value == registers[guard.other.value];
      case GuardKind::different_object: return value != registers[guard.other.value];
      case GuardKind::function_parts: return checks::same_function_parts(value, expected);
      case GuardKind::type_attribute: return compat::type_lookup(reinterpret_cast<PyTypeObject*>(value), guard.key.get()) == expected;
      case GuardKind::more_items: return static_cast<bool>(upcoming_item(value, guard.number));
      case GuardKind::no_more_items: return !upcoming_item(value, guard.number);
      case GuardKind::cell_empty: return PyCell_Check(value) && PyCell_GET(value) == nullptr;
      case GuardKind::value_check: return guard.check->holds(value);
      case GuardKind::distinct: return distinct_holds(guard);
      case GuardKind::numbers: return guard.numbers->holds(registers.data());
    }
    return false;
  }

  bool gate_holds(const Instruction& gate) const noexcept {
    const Stamp& stamp = stamps[gate.stamp];
    PyObject* value = registers[gate.source];
    if (stamp.object != value) return false;
    if (gate.step == Step::type_gate) return stamp.version == compat::type_version(reinterpret_cast<PyTypeObject*>(value));
    return stamp.version == compat::dict_version(value);
  }

  void set_stamp(const Instruction& at) noexcept {
    PyObject* value = registers[at.source];
    if (!trust_versions) return;
    if (at.step == Step::type_stamp) {
      const std::uint32_t version = compat::type_version(reinterpret_cast<PyTypeObject*>(value));
      stamps[at.stamp] = version ? Stamp{value, version} : Stamp{};
    } else if (compat::kHasDictVersions && PyDict_Check(value) && !keeps_own_order(value)) {  // an OrderedDict counts no change of its order
      stamps[at.stamp] = {value, compat::dict_version(value)};
    }
  }

  bool signature_fits(const CallArguments& call) const noexcept {
    return call.positional == positional && checks::same_names(call.keyword_names, keyword_names.get());
  }

  /// The index of the instruction that failed, or none. With `gates` false nothing is taken on trust.
  std::uint32_t run(const CallArguments& call, bool gates) noexcept {
    if (!temporaries.empty()) temporaries.clear();
    const std::uint32_t size = static_cast<std::uint32_t>(code.size());
    for (std::uint32_t at = 0; at < size; ++at) {
      const Instruction& now = code[at];
      switch (now.step) {
        case Step::fetch:
          if ((registers[now.source] = fetch(source(now.source), call)) == nullptr) return at;
          break;
        case Step::fetch_argument: registers[now.source] = call.values[now.number]; break;
        case Step::fetch_instance_dict:
          if ((registers[now.source] = compat::instance_dict(registers[now.jump])) == nullptr) return at;
          break;
        case Step::fetch_dict_item: {
          PyObject* dict = registers[now.jump];
          if (!PyDict_Check(dict) || (registers[now.source] = checks::dict_get(dict, now.object)) == nullptr) return at;
          break;
        }
        case Step::check:
          if (!holds(guards[now.guard])) return at;
          break;
        case Step::check_type:
          if (reinterpret_cast<PyObject*>(Py_TYPE(registers[now.source])) != now.object) return at;
          break;
        case Step::check_identity:
          if (registers[now.source] != now.object) return at;
          break;
        case Step::check_dict_size:
          if (PyDict_GET_SIZE(registers[now.source]) != now.number) return at;
          break;
        case Step::dict_gate:
        case Step::type_gate:
          if (gates && gate_holds(now)) at = now.jump - 1;
          else stamps[now.stamp] = {};
          break;
        case Step::dict_stamp:
        case Step::type_stamp: set_stamp(now); break;
      }
    }
    return kNone;
  }

  GuardFailure failure(const Instruction& at) const {
    if (at.guard == kNone) return {sources.describe({at.source}), "is there", "a value", "nothing"};
    const Guard& guard = guards[at.guard];
    if (guard.kind == GuardKind::numbers)
      if (auto failed = guard.numbers->failure(registers.data())) return *failed;
    PyObject* value = registers[guard.source.value];
    GuardFailure result{sources.describe(guard.source), python::describe(sources, guard), shown(guard.expected.get()), shown(value)};
    switch (guard.kind) {
      case GuardKind::value_check:
        result.expected = guard.check->expected();
        result.found = guard.check->found(value);
        break;
      case GuardKind::type_is:
        result.expected = reinterpret_cast<PyTypeObject*>(guard.expected.get())->tp_name;
        result.found = Py_TYPE(value)->tp_name;
        break;
      case GuardKind::length:
        result.expected = std::to_string(guard.number);
        result.found = std::to_string(checks::length_of(value));
        break;
      case GuardKind::type_attribute:
        result.found = shown(compat::type_lookup(reinterpret_cast<PyTypeObject*>(value), guard.key.get()));
        break;
      case GuardKind::same_object:
      case GuardKind::different_object: result.expected = sources.describe(guard.other); break;
      default: break;
    }
    return result;
  }
};

CheckProgram::CheckProgram(SourceTable sources, const GuardSet& guards, const CallArguments& captured, std::span<const SourceId> wanted)
    : body_(std::make_unique<Body>(std::move(sources))) {
  body_->guards = guards.all();
  if (guards.distinct().size() > 1) {
    Guard distinct{.kind = GuardKind::distinct, .source = guards.distinct().front(), .expected = {}, .key = {}, .other = {}, .others = guards.distinct(), .check = {}, .numbers = {}};
    body_->guards.push_back(std::move(distinct));
  }
  if (guards.numbers()) {
    Guard numbers{.kind = GuardKind::numbers, .source = guards.numbers()->some_source(), .expected = {}, .key = {}, .other = {}, .others = {}, .check = {}, .numbers = guards.numbers()};
    body_->guards.push_back(std::move(numbers));
  }
  body_->positional = captured.positional;
  body_->keyword_names = Ref::borrow(captured.keyword_names);
  body_->build(wanted);
}
CheckProgram::CheckProgram(CheckProgram&&) noexcept = default;
CheckProgram& CheckProgram::operator=(CheckProgram&&) noexcept = default;
CheckProgram::~CheckProgram() = default;

bool CheckProgram::check(const CallArguments& call) noexcept {
  return body_->signature_fits(call) && body_->run(call, true) == kNone;
}

std::uint32_t CheckProgram::slot(SourceId source) const { return source.value; }

int CheckProgram::traverse(visitproc visit, void* arg) const {
  for (const Guard& guard : body_->guards) {
    Py_VISIT(guard.expected.get());
    Py_VISIT(guard.key.get());
  }
  for (const Ref& temporary : body_->temporaries) Py_VISIT(temporary.get());
  Py_VISIT(body_->keyword_names.get());
  return body_->sources.traverse(visit, arg);
}

PyObject* const* CheckProgram::values() const { return body_->registers.data(); }

std::optional<GuardFailure> CheckProgram::explain(const CallArguments& call) {
  if (!body_->signature_fits(call)) {
    return GuardFailure{"the arguments", "same number and names", fmt::format("{} positional, {} by name", body_->positional, body_->keyword_names ? PyTuple_GET_SIZE(body_->keyword_names.get()) : 0),
                        fmt::format("{} positional, {} by name", call.positional, call.keyword_count())};
  }
  const std::uint32_t at = body_->run(call, false);
  if (at == kNone) return std::nullopt;
  return body_->failure(body_->code[at]);
}

std::vector<std::string> CheckProgram::describe() const {
  std::vector<std::string> lines;
  for (const Guard& guard : body_->guards) {
    if (guard.kind != GuardKind::numbers) lines.push_back(python::describe(body_->sources, guard));
    else for (std::string& line : guard.numbers->describe()) lines.push_back(std::move(line));
  }
  return lines;
}

std::size_t CheckProgram::guard_count() const { return body_->guards.size(); }

}  // namespace tenon::python
