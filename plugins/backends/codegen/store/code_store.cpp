#include "store/code_store.h"

#include <fmt/format.h>
#include <llvm/ADT/StringExtras.h>
#include <llvm/Support/SHA256.h>

namespace tenon::codegen {

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

std::optional<std::string> CodeStore::find_object(const std::string& key) const { return origin_.empty() ? std::nullopt : host_.cache_get(key); }

void CodeStore::put_object(const std::string& key, const std::string& object) const {
  if (!origin_.empty()) host_.cache_put(key, object);
}

}  // namespace tenon::codegen
