#include "run/card_code.h"

#include <fmt/format.h>

#include <map>

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

/// What kernels of a plan are compiled for.
struct Target {
  const HostServices& host;
  int ordinal;
  const std::string& architecture;
  codegen::CodeStore store;
};

std::unique_ptr<Module> compiled(const Target& target, const ScheduledPlan& plan, std::size_t kernel, const std::string& text) {
  const std::string function = function_of(plan, kernel, text);
  const std::string key = target.store.key("cuda", function + "\n" + text);
  const bool is_logged = target.host.log_enabled("kernel_code");
  if (const auto stored = is_logged ? std::nullopt : target.store.find_object(key)) {
    try {
      return std::make_unique<Module>(target.ordinal, *stored);
    } catch (const Failure&) {
      // Of another driver, or damaged: made anew.
    }
  }
  const std::string ptx = ptx_of(plan, kernel, function, target.architecture);
  if (is_logged) target.host.log(TENON_INFO, ptx, "kernel_code");
  if (const auto cubin = to_cubin(ptx, target.architecture)) {
    try {
      auto module = std::make_unique<Module>(target.ordinal, *cubin);
      target.store.put_object(key, *cubin);
      return module;
    } catch (const Failure&) {
      // The driver does not take the linker's code: it compiles the text itself.
    }
  }
  auto module = std::make_unique<Module>(target.ordinal, ptx);
  target.store.put_object(key, ptx);
  return module;
}

}  // namespace

CardCode::CardCode(const HostServices& host, int ordinal, const ScheduledPlan& plan)
    : schedules_(plan.schedules), kernels_wait_(cuda::kernels_wait(Cards::get().at(ordinal).architecture)) {
  const std::string& architecture = Cards::get().at(ordinal).architecture;
  const std::string origin = build_id().empty() ? std::string() : fmt::format("{} abi {} {}", build_id(), TENON_ABI_NEWEST, architecture);
  const Target target{host, ordinal, architecture, codegen::CodeStore(host, origin)};
  std::map<std::pair<std::string, std::string>, std::size_t> modules;  // by name for people and text
  std::vector<std::size_t> module_of, first_kernel;
  std::vector<const std::string*> texts;
  for (std::size_t i = 0; i < schedules_.size(); ++i) {
    const auto [known, fresh] = modules.try_emplace({plan.names[i], text_of(plan, i)}, first_kernel.size());
    if (fresh) first_kernel.push_back(i), texts.push_back(&known->first.second);
    module_of.push_back(known->second);
  }
  modules_.resize(texts.size());
  const auto work = [&](std::int64_t first, std::int64_t last) {
    for (auto m = static_cast<std::size_t>(first); m < static_cast<std::size_t>(last); ++m) modules_[m] = compiled(target, plan, first_kernel[m], *texts[m]);
  };
  const auto count = static_cast<std::int64_t>(texts.size());
  if (count > 1 && !host.log_enabled("kernel_code")) host.parallel_for(0, count, 1, work);  // what is logged is in the order of the plan
  else work(0, count);
  for (std::size_t i = 0; i < schedules_.size(); ++i) functions_.push_back(modules_[module_of[i]]->function(function_of(plan, i, *texts[module_of[i]]), schedules_[i].launch_bytes()));
}

void CardCode::give_back(std::unique_ptr<Prepared> prepared) {
  const std::lock_guard lock(mutex_);
  prepared_.push_back(std::move(prepared));
}

}  // namespace tenon::cuda
