#include "stored_code.h"

#include <fmt/format.h>

#include "core/base/error.h"
#include "tenon/plugin_entry.h"

namespace tenon::llvm_backend {
namespace {

/// The linker's hash of the library that this code is in: LLVM, the emitters and the runtime routines are all part of it.
const std::string& build_id() {
  static const int here = 0;
  static const std::string id = build_id_of(&here);
  return id;
}

std::string origin_of(const Target& t) {
  if (build_id().empty()) return {};
  return fmt::format("{} abi {} cpu {} features {} bytes {} fma {} f16c {} libmvec {} streaming {} quiet {}", build_id(), TENON_ABI_NEWEST, t.cpu, t.features,
                     t.vector_bytes, t.has_fma, t.has_f16c, t.vector_functions, t.streaming_bytes, t.quiet_comparisons);
}

}  // namespace

codegen::CodeStore code_store(const HostServices& host, const Target& target) { return {host, origin_of(target)}; }

LinkedCode linked(const codegen::CodeStore& store, const std::string& key, const std::vector<std::string>& names) {
  const auto object = store.find_object(key);
  if (!object) return {};
  try {
    return link(*object, names);
  } catch (const Exception&) {
    return {};
  }
}

}  // namespace tenon::llvm_backend
