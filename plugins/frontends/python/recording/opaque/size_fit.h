// Which expression over sizes that vary a result's size is, as far as samples of it tell.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "core/ir/dim.h"

namespace tenon::python {

/// Sizes of one dimension of a result, for values of the symbols.
struct SizeSamples {
  struct Sample {
    std::vector<std::int64_t> symbols;
    std::int64_t size = 0;
  };
  std::vector<Sample> all;  // the present one first
  std::function<std::optional<std::int64_t>(const std::vector<std::int64_t>&)> size_for;  // one more; nothing for what is no size
};

/// The size as a constant, or as one of the candidates, or what is more or less by a constant. Nothing where a sample says otherwise.
std::optional<ir::Dim> as_sum(std::span<const ir::Dim> candidates, const SizeSamples& samples);
/// The size as floor((p c + b) / q) of a candidate c over one symbol, for a small p: windows, transforms of real numbers, changed sampling rates. More samples are
/// asked for until b is known.
std::optional<ir::Dim> as_quotient(std::span<const ir::Dim> candidates, SizeSamples& samples);

}  // namespace tenon::python
