#include "core/base/error.h"

namespace tenon {

const char* code_name(Code code) {
  switch (code) {
    case Code::ok: return "ok";
    case Code::invalid_argument: return "invalid_argument";
    case Code::malformed: return "malformed";
    case Code::unsupported: return "unsupported";
    case Code::not_found: return "not_found";
    case Code::incompatible: return "incompatible";
    case Code::plugin_failed: return "plugin_failed";
    case Code::out_of_memory: return "out_of_memory";
    case Code::cancelled: return "cancelled";
    case Code::internal: return "internal";
    case Code::device_lost: return "device_lost";
  }
  return "unknown";
}

Code failure_code(std::int32_t number) {
  const auto code = static_cast<Code>(number);
  return number > 0 && code <= Code::device_lost ? code : Code::plugin_failed;
}

void fail_check(const char* condition, const char* file, int line, const std::string& message) {
  throw Exception(Code::internal, fmt::format("{} (a defect of Tenon: {} at {}:{})", message, condition, file, line));
}

}  // namespace tenon
