#include "host/plugins/helper_run.h"

#include <signal.h>

#include <cstring>
#include <nlohmann/json.hpp>
#include <random>

#include "host/plugins/child_process.h"
#include "host/plugins/refusal.h"

namespace tenon::host {
namespace {

using nlohmann::json;

/// What the helper has said so far.
struct Answer {
  std::string token;
  std::string step = "start";
  json last;  // of the line that ends it
  bool usable = false;

  bool take(std::string_view line) {
    if (line.substr(0, token.size()) != token || line.size() <= token.size()) return false;
    line.remove_prefix(token.size() + 1);
    const std::size_t space = line.find(' ');
    const std::string_view word = line.substr(0, space);
    const std::string_view rest = space == std::string_view::npos ? std::string_view() : line.substr(space + 1);
    if (word == "step") {
      step = rest;
      return false;
    }
    usable = word == "usable";
    last = json::parse(rest, nullptr, false);
    return usable || word == "refused";
  }
};

std::string new_token() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}{:08x}{:08x}", random(), random(), random(), random());
}

/// Where the helper was, in words.
std::string place(const std::string& step) {
  if (step == "load") return "while loading";
  if (step == "entry") return "in its entry";
  if (step == "create") return "while it was created";
  if (step == "claim") return "while claiming";
  if (step == "compile") return "while compiling";
  if (step == "serialise") return "while storing what it compiled";
  if (step.rfind("claim ", 0) == 0) return "while claiming sample graph " + step.substr(6);
  if (step.rfind("pass ", 0) == 0) return "while running " + step;
  return "at the step \"" + step + "\"";
}

/// The last line that the plugin wrote to stderr, which often is the reason.
std::string last_words(std::string complaint) {
  while (!complaint.empty() && std::isspace(static_cast<unsigned char>(complaint.back()))) complaint.pop_back();
  const std::size_t line = complaint.rfind('\n');
  std::string words = line == std::string::npos ? complaint : complaint.substr(line + 1);
  if (words.size() > 200) words.resize(200);
  return words.empty() ? words : "; it said: " + words;
}

[[noreturn]] void throw_end(const ChildResult& child, const Answer& answer, double seconds) {
  const std::string where = place(answer.step);
  const std::string words = last_words(child.complaint);
  if (!child.started) throw Refused("probe_failed", "cannot be tried: the helper program does not start: {}", std::strerror(child.start_error));
  if (child.timed_out) throw Refused("timed_out", "did not come back within {} s {}{}", seconds, where, words);
  if (answer.step == "start") throw Refused("probe_failed", "cannot be tried: the helper program ended at once{}", words);
  if (child.exited) throw Refused("exited", "ended the process {} (exit status {}){}", where, child.status, words);
  switch (child.status) {
    case SIGABRT: throw Refused("aborted", "aborted {}{}", where, words);
    case SIGSEGV: throw Refused("segfault", "touched memory that is not there {}{}", where, words);
    case SIGXCPU:
    case SIGKILL: throw Refused("crashed", "was killed {} (out of memory?){}", where, words);
    case -1: throw Refused("crashed", "ended the process {}{}", where, words);
    default: throw Refused("crashed", "crashed {} (signal {}: {}){}", where, child.status, strsignal(child.status), words);
  }
}

}  // namespace

json run_helper(const std::string& program, const Manifest& manifest, std::span<const std::string> more, std::span<const int> files, double seconds) {
  Answer answer;
  answer.token = new_token();
  std::vector<std::string> command = {program, answer.token, manifest.name, manifest.kind ? kind_name(*manifest.kind) : "", manifest.library};
  command.insert(command.end(), more.begin(), more.end());
  const ChildResult child = run_child(command, files, seconds, [&](std::string_view line) { return answer.take(line); });
  if (answer.last.is_object() && answer.usable) return std::move(answer.last);
  if (answer.last.is_object()) throw Refused(Refusal{answer.last.value("reason", "probe_failed"), answer.last.value("text", "")});
  throw_end(child, answer, seconds);
}

}  // namespace tenon::host
