#include "python/call/continuation.h"

#include "python/call/function_cache.h"
#include "python/call/session.h"

namespace tenon::python {
namespace {

// Steps after which other Python threads get a turn: the loop below never enters CPython's, which would see to that.
constexpr std::size_t kStepsBetweenTurns = 64;

/// Keeps an entry while it is used: a reset may take it out of the cache meanwhile.
class Held {
 public:
  explicit Held(CacheEntry* entry) : entry_(entry) { entry->retain(); }
  ~Held() { entry_->release(); }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  void hold(CacheEntry* entry) {
    entry->retain();
    std::exchange(entry_, entry)->release();
  }
  CacheEntry& operator*() const { return *entry_; }
  CacheEntry* operator->() const { return entry_; }

 private:
  CacheEntry* entry_;
};

}  // namespace

PyObject* Continuation::run(CacheEntry* entry, std::vector<Ref> objects) {
  Held held(entry);
  Ref result;
  if (!chain_.settle(*held->segment().stop, std::move(objects))) return nullptr;
  Progress progress = step(*held->segment().stop, result);
  while (progress == Progress::goes_on) {
    slots_.gather(chain_);
    CapturePoint* point = cache_.point_after(*held, chain_, slots_);
    CacheEntry* next = point ? cache_.entry_at(*point, slots_.arguments(), &chain_) : nullptr;
    if (!next && !PyErr_Occurred()) return plainly();
    Built built;
    if (next) held.hold(next);
    const RunStatus status = next ? next->run(built) : RunStatus::raised;
    if (status == RunStatus::raised) {  // `finally` and `with` of the program must see it
      progress = chain_.raise_here();
      continue;
    }
    if (status != RunStatus::done) {
      cache_.report_refusal(status);
      return plainly();
    }
    const std::optional<BreakState>& stop = next->segment().stop;
    if (!stop) {
      chain_.end_frames(0);
      return built.result.release();
    }
    if (!chain_.settle(*stop, std::move(built.objects))) return nullptr;
    progress = step(*stop, result);
  }
  return progress == Progress::returned ? result.release() : nullptr;
}

Progress Continuation::step(const BreakState& stop, Ref& result) {
  if (++steps_ % kStepsBetweenTurns == 0) {
    Py_BEGIN_ALLOW_THREADS;
    Py_END_ALLOW_THREADS;
  }
  return PyErr_CheckSignals() < 0 ? chain_.raise_here() : chain_.step(stop.keyword_names.get(), result);
}

/// The rest of the call as plain Python.
PyObject* Continuation::plainly() {
  counters().eager_fallbacks.fetch_add(1, std::memory_order_relaxed);
  return chain_.finish();
}

}  // namespace tenon::python
