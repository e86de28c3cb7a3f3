#include "code_store.h"

#include <fmt/format.h>
#include <llvm/ADT/StringExtras.h>
#include <llvm/Support/SHA256.h>

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

std::string origin_of(const codegen::Target& t) {
  if (build_id().empty()) return {};
  return fmt::format("{} abi {} cpu {} features {} bytes {} fma {} f16c {} libmvec {} streaming {} quiet {}", build_id(), TENON_ABI_NEWEST, t.cpu, t.features,
                     t.vector_bytes, t.has_fma, t.has_f16c, t.vector_functions, t.streaming_bytes, t.quiet_comparisons);
}

}  // namespace

CodeStore::CodeStore(const HostServices& host, const codegen::Target& target) : host_(host), origin_(origin_of(target)) {}

std::string CodeStore::key(std::string_view kind, std::string_view text) const {
  llvm::SHA256 hash;
  for (std::string_view part : {std::string_view(origin_), kind, text}) {
    hash.update(llvm::StringRef(fmt::format("{}:", part.size())));
    hash.update(llvm::StringRef(part.data(), part.size()));
  }
  return fmt::format("{} {}", kind, llvm::toHex(hash.final(), true));
}

std::optional<CodeStore::Place> CodeStore::find_place(const std::string& key) const {
  const auto bytes = origin_.empty() ? std::nullopt : host_.cache_get(key);
  const std::size_t end = bytes ? bytes->find('\n') : std::string::npos;
  if (end == std::string::npos) return std::nullopt;
  return Place{bytes->substr(0, end), bytes->substr(end + 1)};
}

void CodeStore::put_place(const std::string& key, const Place& place) const {
  if (!origin_.empty()) host_.cache_put(key, place.object + '\n' + place.function);
}

std::optional<ObjectCode> CodeStore::find_object(const std::string& key) const { return origin_.empty() ? std::nullopt : host_.cache_get(key); }

void CodeStore::put_object(const std::string& key, const ObjectCode& object) const {
  if (!origin_.empty()) host_.cache_put(key, object);
}

LinkedCode linked(const CodeStore& store, const std::string& key, const std::vector<std::string>& names) {
  const auto object = store.find_object(key);
  if (!object) return {};
  try {
    return link(*object, names);
  } catch (const Exception&) {
    return {};
  }
}

}  // namespace tenon::llvm_backend
