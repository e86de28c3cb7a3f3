// One run of a plan, step by step, with what happens when a backend fails in the middle.
#pragma once

#include <cstdint>

#include "host/diagnostics/failure.h"
#include "host/runtime/run_context.h"

namespace tenon::host {

class PlanRun {
 public:
  PlanRun(Plan& plan, RunContext& context, const TenonRunArgs& args) : plan_(plan), context_(context), args_(args) {}

  void steps();
  /// Goes on after a backend has given this code, or has done what is noted as a defect: another way to run the step, or a Failure.
  void after_failure(std::uint32_t s, std::int32_t code);

 private:
  void steps_on_devices();
  void step_on_devices(std::uint32_t s);
  /// Throws what a failure that lost a device is to the user; returns where the plan had given it nothing.
  void lose_device(std::uint32_t s, const Failure& why) const;
  std::string words_of(const Step& step) const;
  std::string words_of_work(std::uint32_t s) const;
  void step(std::uint32_t s);
  void group(std::uint32_t s);
  void complete(std::uint32_t step);
  void copy(std::uint32_t s);
  /// The stream that a step's work is given to.
  void* stream_of(const Step& step) const { return context_.devices ? context_.devices->stream(step.device) : args_.stream; }
  void branch(std::uint32_t s);
  /// From here on the step runs another way than as its artefact.
  void leave_artefact(std::uint32_t s);
  void along_route(std::uint32_t s, Plan& route);

  Plan& plan_;
  RunContext& context_;
  const TenonRunArgs& args_;
};

}  // namespace tenon::host
