// Catch2 under both of its spellings: 2.13 in Debian 12, 3 elsewhere.
#pragma once

#ifdef TENON_CATCH3
#include <catch2/catch_all.hpp>
namespace Catch {
/// Version 2's name for the matcher of a part of a text.
inline auto Contains(const std::string& part) { return Matchers::ContainsSubstring(part); }
}  // namespace Catch
using Catch::Approx;
#else
#include <catch2/catch.hpp>
#endif
