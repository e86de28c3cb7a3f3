#include "host/plugins/isolation/probe_program.h"

#include <signal.h>

#include <cstdio>
#include <cstring>
#include <random>

#include "core/base/error.h"
#include "host/plugins/find/refusal.h"
#include "host/plugins/isolation/child_process.h"

namespace tenon::host {
namespace {

using nlohmann::json;

/// What the helper has said so far.
struct SaidSoFar {
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

/// A word of the helper's last line, which a plugin may have spoiled.
std::string word_of(const json& said, const char* key, const char* otherwise) {
  const auto found = said.find(key);
  return found != said.end() && found->is_string() ? found->get<std::string>() : otherwise;
}

/// Where the helper was, in words. A step of the trial is numbered: "claim 0".
std::string place(const std::string& step) {
  constexpr std::pair<std::string_view, const char*> kPlaces[] = {
      {"load", "while loading"},           {"entry", "in its entry"},      {"create", "while it was created"},       {"claim", "while claiming"},
      {"compile", "while compiling"},      {"workspace", "when it was asked for its workspace"},                     {"execute", "while executing"},
      {"give_output", "while it took back a tensor that it gave"},         {"serialise", "while storing what it compiled"},
      {"reload", "while loading what it stored"},                          {"release", "while giving back what it compiled"}, {"destroy", "while it was destroyed"}};
  const std::string_view word = std::string_view(step).substr(0, step.find(' '));
  for (const auto& [name, words] : kPlaces)
    if (word == name) return word == step ? words : fmt::format("{} sample graph{}", words, step.substr(word.size()));
  if (word == "pass") return "while running " + step;
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

[[noreturn]] void throw_end(const ChildResult& child, const SaidSoFar& answer, double seconds) {
  const std::string where = place(answer.step);
  const std::string words = last_words(child.complaint);
  if (!child.started) throw Refused("probe_failed", "cannot be tried: the helper program does not start: {}", std::strerror(child.start_error));
  if (child.cancelled) throw Exception(Code::cancelled, "the compile was cancelled");
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

Helper::Answer Helper::ask(json request, std::span<const std::string_view> parts, double seconds) const {
  request.update(settings_);
  const Descriptor asked = anonymous_file(), replied = anonymous_file();
  write_message(asked.get(), request, parts);
  SaidSoFar said;
  said.token = new_token();
  const std::vector<std::string> command = {program_, said.token, manifest_.name, manifest_.kind ? kind_name(*manifest_.kind) : "", manifest_.library};
  const int files[] = {library_.get(), asked.get(), replied.get()};
  const ChildResult child = run_child(command, files, seconds, [&](std::string_view line) { return said.take(line); });
  if (said.last.is_object() && !said.usable) throw Refused(Refusal{word_of(said.last, "reason", "probe_failed"), word_of(said.last, "text", "")});
  if (!said.last.is_object()) throw_end(child, said, seconds);
  std::fwrite(child.complaint.data(), 1, child.complaint.size(), stderr);
  return {std::move(said.last), read_message(replied.get())};
}

}  // namespace tenon::host
