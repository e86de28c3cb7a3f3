// tenon-probe: loads one plugin and tries it, so that the host learns of a bad one without being harmed. The host starts it; see
// host/plugins/isolation/probe_protocol.h for what is said.
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string_view>

#include "answer.h"
#include "core/base/error.h"
#include "host/diagnostics/events.h"
#include "host/plugins/contact/host_table.h"
#include "host/plugins/contact/library.h"
#include "host/plugins/find/refusal.h"
#include "host/plugins/isolation/message_file.h"
#include "host/plugins/isolation/probe_protocol.h"
#include "host/store/byte_store.h"
#include "isolated_call.h"
#include "trial.h"

namespace {

using namespace tenon;

void limit(int resource, rlim_t value) {
  rlimit now{};
  if (getrlimit(resource, &now) != 0) return;
  now.rlim_cur = now.rlim_max == RLIM_INFINITY ? value : std::min(value, now.rlim_max);
  setrlimit(resource, &now);
}

/// No core files, a stack that has an end, and half of the machine's memory at most.
void limit_process() {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_STACK, rlim_t{8} << 20);
  const auto memory = static_cast<rlim_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<rlim_t>(sysconf(_SC_PAGESIZE));
  // The shadow memory of a sanitizer counts as data.
  if (!*TENON_SANITIZER) limit(RLIMIT_DATA, std::min<rlim_t>(rlim_t{8} << 30, memory / 2));
}

std::optional<TenonKind> kind_named(const std::string& name) {
  for (const TenonKind kind : {TENON_KIND_FRONTEND, TENON_KIND_PASSES, TENON_KIND_BACKEND})
    if (name == host::kind_name(kind)) return kind;
  return std::nullopt;
}

host::Manifest manifest_of(char** arguments) {
  host::Manifest manifest;
  manifest.name = arguments[2];
  manifest.kind = kind_named(arguments[3]);
  manifest.library = arguments[4];
  return manifest;
}

std::vector<std::string> passes_of(const TenonPlugin& plugin) {
  if (!plugin.passes) return {};
  return {plugin.passes->names, plugin.passes->names + plugin.passes->count};
}

/// Loads the library and does what is asked of it.
const TenonPlugin& answer(const host::Manifest& manifest) {
  const host::Message request = host::read_message(host::kHelperRequest);
  host::Events events;
  events.set_logs(request.head.at("logs").get<std::string>());
  const nlohmann::json& cache = request.head.at("cache");
  const bool is_trial = request.head.at("call") == "try";
  host::ByteStore store(is_trial ? "" : cache.at("directory").get<std::string>(), cache.at("bytes"));  // samples are not worth keeping
  const TenonPlugin& plugin = *host::load_library(host::Descriptor(host::kProbeLibrary), manifest, probe::enter_step);
  host::HostTable& table = host::HostTable::make_lasting(plugin.name, plugin.abi, &events, &store);
  nlohmann::json head = {{"code", TENON_OK}};
  std::string stored;
  if (is_trial) probe::try_plugin(plugin, table.functions(), request.head.at("create_options"));
  else if (plugin.backend) head = probe::answer_call(*plugin.backend, table.functions(), request, stored);
  else throw Exception(Code::malformed, "only a backend is called");
  table.detach();
  head["counts"] = events.counts();
  const std::string_view parts[] = {stored};
  host::write_message(host::kHelperReply, head, parts);
  return plugin;
}

[[noreturn]] void run(const host::Manifest& manifest) {
  try {
    const TenonPlugin* plugin = &answer(manifest);
    probe::accept(host::kind_name(static_cast<TenonKind>(plugin->kind)), passes_of(*plugin));
  } catch (const host::Refused& refused) {
    probe::refuse(refused.refusal().reason, refused.refusal().text);
  } catch (const Exception& problem) {
    probe::refuse("probe_failed", problem.what());
  } catch (const nlohmann::json::exception& problem) {
    probe::refuse("probe_failed", problem.what());
  }
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 5) {
    std::fputs("tenon-probe is started by libtenon to try a plugin, or to call it; see `tenon plugins why`\n", stderr);
    return 2;
  }
  // What the plugin starts must not keep the host waiting.
  fcntl(host::kProbeLibrary, F_SETFD, FD_CLOEXEC);
  fcntl(host::kProbeAnswer, F_SETFD, FD_CLOEXEC);
  fcntl(host::kHelperRequest, F_SETFD, FD_CLOEXEC);
  fcntl(host::kHelperReply, F_SETFD, FD_CLOEXEC);
  limit_process();
  probe::begin_answer(arguments[1]);
  probe::report_deaths();
  run(manifest_of(arguments));
}
