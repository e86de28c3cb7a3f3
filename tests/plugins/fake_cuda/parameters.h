// What a text of kernels says of their parameters.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "driver/functions.h"

/// What the text says of a parameter, or of an entry of a table, each of 8 bytes. A table has those of several runs, one behind the other.
struct FakeParameter {
  enum class Kind { value, reads, writes } kind = Kind::value;
  std::size_t bytes = 1, alignment = 1;  // of the memory that it is the address of, or points so many bytes behind the beginning of
  std::int64_t start = 0;

  std::uint64_t begin(std::uint64_t address) const { return address - static_cast<std::uint64_t>(start); }
};
struct tenon::cuda::CUfunc_st {
  std::vector<FakeParameter> parameters;
  std::size_t in_first = 1;  // of them; the first parameter is a table of more
  unsigned most_shared_bytes = tenon::cuda::kSharedWithoutAsking;
};

/// The kernels of a text.
std::map<std::string, tenon::cuda::CUfunc_st> functions_of(const std::string& ptx);
