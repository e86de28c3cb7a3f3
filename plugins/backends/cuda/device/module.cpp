#include "device/module.h"

#include <fmt/format.h>

#include <array>

#include "device/cards.h"
#include "tenon/host_services.h"

namespace tenon::cuda {

Module::Module(int ordinal, const std::string& image) : ordinal_(ordinal) {
  const InContext context(ordinal);
  const Driver& driver = Driver::get();
  std::array<char, 4096> words{};
  std::array<int, 2> options = {kErrorLog, kErrorLogBytes};
  std::array<void*, 2> values = {words.data(), reinterpret_cast<void*>(words.size() - 1)};
  const CUresult code = driver.module_load.code(&module_, image.c_str(), static_cast<unsigned>(options.size()), options.data(), values.data());
  if (words[0] == '\0') driver.module_load.check(code);
  if (code != kSuccess) throw Failure(TENON_PLUGIN_FAILED, fmt::format("the driver cannot compile a kernel: {}: {}", driver.words_of(code), words.data()));
}

Module::~Module() {
  try {
    const InContext context(ordinal_);
    const Driver& driver = Driver::get();
    driver.context_synchronise.code();
    driver.module_unload.code(module_);
  } catch (const Failure&) {
    // The process or the card is at its end, and the code with it.
  }
}

CUfunction Module::function(const std::string& name, unsigned shared_bytes) const {
  const InContext context(ordinal_);
  CUfunction found = nullptr;
  Driver::get().module_function(&found, module_, name.c_str());
  if (shared_bytes > kSharedWithoutAsking) Driver::get().function_set(found, kMostSharedBytes, static_cast<int>(shared_bytes));
  return found;
}

}  // namespace tenon::cuda
