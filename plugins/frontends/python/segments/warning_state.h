// How the module warnings filters and shows what is issued, as far as a program can change it.
#pragma once

#include <array>

#include "python/objects/ref.h"

namespace tenon::python {

class WarningState {
 public:
  /// As it is now.
  WarningState();
  bool is_current() const;
  /// Gives the list its filters back, where it has others now.
  void restore_filters() const;

 private:
  std::array<Ref, 3> attributes_;
  Ref filters_;  // tuple
};

}  // namespace tenon::python
