#include "core/guards/source.h"

#include <bit>

#include "core/base/error.h"
#include "core/base/hash.h"

namespace tenon::guards {
namespace {

std::uint64_t hash_of(const Fact& fact) {
  struct Visitor {
    std::uint64_t operator()(std::monostate) const { return 1; }
    std::uint64_t operator()(bool b) const { return b; }
    std::uint64_t operator()(std::int64_t i) const { return static_cast<std::uint64_t>(i); }
    std::uint64_t operator()(double d) const { return std::bit_cast<std::uint64_t>(d); }
    std::uint64_t operator()(const std::string& s) const { return std::hash<std::string>{}(s); }
    std::uint64_t operator()(const ObjectKey& o) const { return o.id; }
    std::uint64_t operator()(const FactList& list) const {
      std::uint64_t h = list.size();
      for (const Fact& f : list) h = mix(h, hash_of(f));
      return h;
    }
  };
  return mix(fact.value.index(), std::visit(Visitor{}, fact.value));
}

std::uint64_t hash_of(const Source& s) { return mix(mix(static_cast<std::uint64_t>(s.kind), s.parent.value), hash_of(s.key)); }

std::string key_text(const Fact& key) {
  const auto* text = std::get_if<std::string>(&key.value);
  return text ? *text : key.to_string();
}

}  // namespace

SourceId SourceTable::add(Source source) {
  TENON_CHECK(is_root(source.kind) != static_cast<bool>(source.parent), "a source of kind {} with parent {}", static_cast<int>(source.kind), source.parent.value);
  TENON_CHECK(!source.parent || source.parent.value < sources_.size(), "source {} does not exist", source.parent.value);
  const std::uint64_t hash = hash_of(source);
  const auto [first, last] = ids_.equal_range(hash);
  for (auto i = first; i != last; ++i)
    if (sources_[i->second.value] == source) return i->second;
  const SourceId id(sources_.size());
  sources_.push_back(std::move(source));
  ids_.emplace(hash, id);
  return id;
}

SourceId SourceTable::root_of(SourceId id) const {
  while (sources_[id.value].parent) id = sources_[id.value].parent;
  return id;
}

bool SourceTable::is_within(SourceId id, SourceId ancestor) const {
  while (id && id != ancestor) id = sources_[id.value].parent;
  return static_cast<bool>(id);
}

std::string SourceTable::describe(SourceId id) const {
  const Source& s = sources_[id.value];
  const std::string parent = s.parent ? describe(s.parent) : "", key = key_text(s.key);
  switch (s.kind) {
    case SourceKind::argument: {
      const auto* position = std::get_if<std::int64_t>(&s.key.value);
      if (!position) return key;
      const auto i = static_cast<std::size_t>(*position);
      return i < argument_names_.size() ? argument_names_[i] : fmt::format("arg[{}]", *position);
    }
    case SourceKind::local:
    case SourceKind::global:
    case SourceKind::object:
    case SourceKind::global_state: return key;
    case SourceKind::attribute:
    case SourceKind::member:
    case SourceKind::tensor_property: return parent + "." + key;
    case SourceKind::item: return parent + "[" + s.key.to_string() + "]";
    case SourceKind::instance_dict: return parent + ".__dict__";
    case SourceKind::type_attribute: return "type(" + parent + ")." + key;
    case SourceKind::type_of: return "type(" + parent + ")";
    case SourceKind::length: return "len(" + parent + ")";
    case SourceKind::keys: return "list(" + parent + ")";
    case SourceKind::closure_cell: return parent + ".__closure__[" + key + "]";
    case SourceKind::cell_contents: return parent + ".cell_contents";
    case SourceKind::default_value:
      return std::holds_alternative<std::string>(s.key.value) ? parent + ".__kwdefaults__[" + s.key.to_string() + "]" : parent + ".__defaults__[" + key + "]";
    case SourceKind::bound_self: return parent + ".__self__";
    case SourceKind::bound_function: return parent + ".__func__";
    case SourceKind::weak_target: return parent + "()";
    case SourceKind::upcoming: return "upcoming(" + parent + ", " + key + ")";
  }
  return parent;
}

}  // namespace tenon::guards
