// The ways in which the kit runs one sample: each asks for something else that a backend may get wrong.
#pragma once

#include <span>
#include <string>

#include "backend_under_test.h"
#include "core/ops/reference/sample.h"

namespace tenon::conformance {

enum class Status : std::uint8_t { passed, failed, not_claimed, not_applicable };

struct Outcome {
  Status status = Status::passed;
  std::string text;  // failed: what went wrong; not_claimed: the backend's reason
};

/// What a variation works on.
struct Trial {
  const BackendUnderTest& backend;
  const ops::Op& op;
  const ops::Sample& sample;
};

struct Variation {
  const char* name;
  const char* asks;  // one sentence: what it looks for
  Outcome (*run)(const Trial& trial);
};

/// All variations, the plain run first. A sample whose plain run is not passed gets no other.
std::span<const Variation> variations();

}  // namespace tenon::conformance
