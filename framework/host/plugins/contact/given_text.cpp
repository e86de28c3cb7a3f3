#include "host/plugins/contact/given_text.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace tenon::host {

std::string text_of(const char* given) {
  std::string text = given ? given : "";
  if (std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x80; })) return text;
  const std::string valid = nlohmann::json(std::move(text)).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return nlohmann::json::parse(valid).get<std::string>();
}

}  // namespace tenon::host
