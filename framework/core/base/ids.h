// Typed 32-bit indices into arenas.
#pragma once

#include <cstdint>
#include <functional>

namespace tenon {

/// Refers to an element of one arena. A default-constructed index refers to nothing and is false.
template <class Tag>
struct Index {
  static constexpr std::uint32_t kNone = 0xffffffffu;

  std::uint32_t value = kNone;

  constexpr Index() = default;
  constexpr explicit Index(std::size_t v) : value(static_cast<std::uint32_t>(v)) {}

  constexpr explicit operator bool() const { return value != kNone; }
  friend constexpr auto operator<=>(const Index&, const Index&) = default;
};

using NodeId = Index<struct NodeTag>;
using ValueId = Index<struct ValueTag>;
using SymbolId = Index<struct SymbolTag>;
using RegionId = Index<struct RegionTag>;
using ConstantId = Index<struct ConstantTag>;
using TypeId = Index<struct TypeTag>;

namespace ir {
using tenon::ConstantId;
using tenon::NodeId;
using tenon::RegionId;
using tenon::SymbolId;
using tenon::TypeId;
using tenon::ValueId;
}  // namespace ir

}  // namespace tenon

template <class Tag>
struct std::hash<tenon::Index<Tag>> {
  std::size_t operator()(tenon::Index<Tag> i) const noexcept { return std::hash<std::uint32_t>{}(i.value); }
};
