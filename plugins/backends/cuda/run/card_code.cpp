#include "run/card_code.h"

#include <fmt/format.h>

#include "device/cards.h"
#include "driver/linker.h"
#include "store/code_store.h"
#include "tenon/plugin_entry.h"

namespace tenon::cuda {
namespace {

/// The linker's hash of this library: all that makes code is part of it.
const std::string& build_id() {
  static const int here = 0;
  static const std::string id = build_id_of(&here);
  return id;
}

std::unique_ptr<Module> compiled(const HostServices& host, int ordinal, const ScheduledPlan& plan, const std::string& architecture) {
  const std::string origin = build_id().empty() ? std::string() : fmt::format("{} abi {} {}", build_id(), TENON_ABI_NEWEST, architecture);
  const codegen::CodeStore store(host, origin);
  const std::string key = store.key("cuda", text_of(plan));
  const bool is_logged = host.log_enabled("kernel_code");
  if (const auto stored = is_logged ? std::nullopt : store.find_object(key)) {
    try {
      return std::make_unique<Module>(ordinal, *stored);
    } catch (const Failure&) {
      // Of another driver, or damaged: made anew.
    }
  }
  const std::string ptx = ptx_of(plan, architecture);
  if (is_logged) host.log(TENON_INFO, ptx, "kernel_code");
  if (const auto cubin = to_cubin(ptx, architecture)) {
    try {
      auto module = std::make_unique<Module>(ordinal, *cubin);
      store.put_object(key, *cubin);
      return module;
    } catch (const Failure&) {
      // The driver does not take the linker's code: it compiles the text itself.
    }
  }
  auto module = std::make_unique<Module>(ordinal, ptx);
  store.put_object(key, ptx);
  return module;
}

}  // namespace

CardCode::CardCode(const HostServices& host, int ordinal, const ScheduledPlan& plan)
    : module_(compiled(host, ordinal, plan, Cards::get().at(ordinal).architecture)), schedules_(plan.schedules), kernels_wait_(cuda::kernels_wait(Cards::get().at(ordinal).architecture)) {
  for (std::size_t i = 0; i < schedules_.size(); ++i) functions_.push_back(module_->function(fmt::format("kernel{}", i), schedules_[i].launch_bytes()));
}

std::unique_ptr<CardCode::Prepared> CardCode::take() {
  const std::lock_guard lock(mutex_);
  if (prepared_.empty()) return nullptr;
  auto taken = std::move(prepared_.back());
  prepared_.pop_back();
  return taken;
}

void CardCode::give_back(std::unique_ptr<Prepared> prepared) {
  const std::lock_guard lock(mutex_);
  prepared_.push_back(std::move(prepared));
}

}  // namespace tenon::cuda
