// The cards that this backend can use, and their contexts.
#pragma once

#include <deque>
#include <mutex>
#include <string>
#include <vector>

#include "core/abi/dlpack.h"
#include "driver/driver.h"

namespace tenon::cuda {

struct Card {
  CUdevice device = 0;
  std::string name, architecture;  // "NVIDIA H100", "sm_90a": the newest that code is made for and the card runs
  std::size_t memory_bytes = 0;
  std::once_flag retained;
  CUcontext context = nullptr;  // the primary one, from its first use on: that of every library of the process
};

/// One a process. A card keeps its ordinal, also where one before it cannot be used.
class Cards {
 public:
  static Cards& get();

  const std::vector<DLDevice>& devices() const { return devices_; }
  /// Throws a Failure where there is none.
  Card& at(int ordinal);
  /// Makes the context where it is not there yet.
  CUcontext context_of(int ordinal);
  /// Why there are no cards; empty where there are.
  std::string why_none() const;

 private:
  Cards();
  /// Empty, or why the card cannot be used.
  std::string look_at(int ordinal);

  std::deque<Card> cards_;
  std::vector<DLDevice> devices_;
  std::string left_out_;
};

/// The card's context is the thread's while it lives. Mostly it was that before: libraries leave the primary one where they used it.
class InContext {
 public:
  explicit InContext(int ordinal) {
    const Driver& driver = Driver::get();
    CUcontext wanted = Cards::get().context_of(ordinal), current = nullptr;
    pushed_ = driver.context_current.code(&current) != kSuccess || current != wanted;
    if (pushed_) driver.context_push(wanted);
  }
  ~InContext() {
    CUcontext mine = nullptr;
    if (pushed_) Driver::get().context_pop.code(&mine);
  }
  InContext(const InContext&) = delete;

 private:
  bool pushed_;
};

}  // namespace tenon::cuda
