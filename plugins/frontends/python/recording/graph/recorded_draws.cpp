#include "python/recording/graph/recorded_draws.h"

#include <algorithm>

namespace tenon::python {

bool RecordedDraws::all_of_torch(std::size_t first) const {
  return std::all_of(draws_.begin() + static_cast<std::ptrdiff_t>(first), draws_.end(), [](const Draw& draw) { return draw.torch; });
}

void RecordedDraws::begin_again(std::size_t first) {
  if (again_) throw GraphBreak("a part of the program is evaluated again within another one");
  again_ = first;
}

const std::vector<ir::ValueId>& RecordedDraws::next(const std::string& function, const std::vector<ir::Type>& types) {
  if (*again_ >= draws_.size() || draws_[*again_].function != function || draws_[*again_].types != types)
    throw GraphBreak("a part of the program that is evaluated again takes other random numbers");
  return draws_[(*again_)++].results;
}

}  // namespace tenon::python
