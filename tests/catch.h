// Catch2 under both of its spellings: 2.13 in Debian 12, 3 elsewhere.
#pragma once

#ifdef TENON_CATCH3
#include <catch2/catch_all.hpp>
#else
#include <catch2/catch.hpp>
#endif
