#include "answer.h"

#include <cxxabi.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <exception>
#include <nlohmann/json.hpp>

#include "host/plugins/isolation/probe_protocol.h"

namespace tenon::probe {
namespace {

// The handlers of signals may only write what is ready.
char token[64];
char step_now[128];
char overflow_line[512];

void write_line(const char* line, std::size_t size) {
  while (size > 0) {
    const ssize_t n = ::write(host::kProbeAnswer, line, size);
    if (n <= 0) return;
    line += n, size -= static_cast<std::size_t>(n);
  }
}

std::string verdict_line(const std::string& reason, const std::string& text) {
  const nlohmann::json verdict = {{"reason", reason}, {"text", text}};
  return fmt::format("{} refused {}\n", token, verdict.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

std::string type_of_current_exception() {
  const std::type_info* type = abi::__cxa_current_exception_type();
  if (!type) return "an exception of another runtime";
  int status = 0;
  char* name = abi::__cxa_demangle(type->name(), nullptr, nullptr, &status);
  std::string result = name ? name : type->name();
  std::free(name);
  return result;
}

/// An exception in a static constructor, or one that leaves a noexcept function, ends here.
[[noreturn]] void on_terminate() {
  if (!std::current_exception()) std::abort();
  try {
    std::rethrow_exception(std::current_exception());
  } catch (const std::exception& thrown) {
    refuse("threw", fmt::format("threw an exception at the step \"{}\": {}: {}", step_now, type_of_current_exception(), thrown.what()));
  } catch (...) {
    refuse("threw", fmt::format("threw an exception at the step \"{}\": {}", step_now, type_of_current_exception()));
  }
}

std::uintptr_t stack_pointer(const ucontext_t& context) {
#if defined(__x86_64__)
  return static_cast<std::uintptr_t>(context.uc_mcontext.gregs[REG_RSP]);
#else
  return static_cast<std::uintptr_t>(context.uc_mcontext.sp);
#endif
}

/// A fault close to the stack pointer is the stack's end; any other is left to the default, which the host sees as SIGSEGV.
void on_fault(int signal, siginfo_t* info, void* context) {
  const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
  const std::uintptr_t stack = stack_pointer(*static_cast<const ucontext_t*>(context));
  constexpr std::uintptr_t near = 1 << 16;
  if (address + near >= stack && address <= stack + near) {
    write_line(overflow_line, std::strlen(overflow_line));
    _exit(1);
  }
  ::signal(signal, SIG_DFL);
}

}  // namespace

void begin_answer(const char* given) { std::snprintf(token, sizeof token, "%s", given); }

void enter_step(const char* step) {
  std::snprintf(step_now, sizeof step_now, "%s", step);
  const std::string line = verdict_line("stack_overflow", fmt::format("overflowed the stack at the step \"{}\"", step_now));
  std::snprintf(overflow_line, sizeof overflow_line, "%s", line.c_str());
  const std::string said = fmt::format("{} step {}\n", token, step);
  write_line(said.data(), said.size());
}

void refuse(const std::string& reason, const std::string& text) {
  const std::string line = verdict_line(reason, text);
  write_line(line.data(), line.size());
  _exit(1);
}

void accept(const char* kind, const std::vector<std::string>& passes) {
  const nlohmann::json verdict = {{"kind", kind}, {"passes", passes}};
  const std::string line = fmt::format("{} usable {}\n", token, verdict.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  write_line(line.data(), line.size());
  _exit(0);
}

void report_deaths() {
  std::set_terminate(on_terminate);
  constexpr std::size_t kBytes = 64 * 1024;
  stack_t stack{};
  stack.ss_sp = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  stack.ss_size = kBytes;
  ::sigaltstack(&stack, nullptr);
  struct sigaction action{};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  ::sigaction(SIGSEGV, &action, nullptr);
  ::sigaction(SIGBUS, &action, nullptr);
}

}  // namespace tenon::probe
