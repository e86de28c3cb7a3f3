#include "host/config/flags.h"

#include <stdlib.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace tenon::host {
namespace {

const std::array kFlags = {
    Flag{"config", "TENON_CONFIG", &Config::file,
         "the configuration file; else tenon.toml in the working directory, else in the user's configuration directory", true},
    Flag{"compile.backends", "TENON_BACKENDS", &Config::backends, "backends in order of preference"},
    Flag{"compile.fallback", "TENON_FALLBACK", &Config::fallback_backend, "the backend that runs what none of them claims"},
    Flag{"compile.artefact_limit", "TENON_ARTEFACT_LIMIT", &Config::artefact_limit,
         "how many sizes of one group are kept for a backend that takes static shapes only"},
    Flag{"compile.warm_up", "TENON_WARM_UP", &Config::warm_up, "load plugins and start the code generator while the program starts"},
    Flag{"passes.pipeline", "TENON_PIPELINE", &Config::pipeline, "passes in the order in which they run"},
    Flag{"passes.disable", "TENON_DISABLE_PASSES", &Config::disabled_passes, "passes that are left out, by name or pattern"},
    Flag{"passes.verify", "TENON_VERIFY_PASSES", &Config::verify_passes, "verify the graph after each pass"},
    Flag{"passes.dump_before", "TENON_DUMP_BEFORE", &Config::dump_passes_before, "pattern of the passes before which the graph is dumped"},
    Flag{"passes.dump_after", "TENON_DUMP_AFTER", &Config::dump_passes_after, "pattern of the passes after which the graph is dumped"},
    Flag{"passes.dump_directory", "TENON_DUMP_DIRECTORY", &Config::dump_directory,
         "where graphs are dumped, one file each; empty: to the log of the passes", true},
    Flag{"plugins.paths", "TENON_PLUGIN_PATH", &Config::plugin_paths,
         "directories with plugins, besides the built-in one; those of the environment are searched before those of the file", true},
    Flag{"plugins.select", "TENON_PLUGIN_SELECT", &Config::select_plugins, "patterns of the plugins that may be used"},
    Flag{"plugins.disable", "TENON_PLUGIN_DISABLE", &Config::disable_plugins, "patterns of the plugins that are left out"},
    Flag{"plugins.probe", "TENON_PLUGIN_PROBE", &Config::probe, "load a plugin of unknown origin in a helper process first"},
    Flag{"plugins.probe_seconds", "TENON_PROBE_SECONDS", &Config::probe_seconds, "how long the helper process may take"},
    Flag{"plugins.isolate", "TENON_PLUGIN_ISOLATE", &Config::isolate,
         "let backends of unknown origin claim and compile in a helper process only; such a backend must store its artefacts"},
    Flag{"plugins.isolate_seconds", "TENON_ISOLATE_SECONDS", &Config::isolate_seconds, "how long an isolated claim or compile may take"},
    Flag{"plugins.check", "TENON_PLUGIN_CHECK", &Config::check_plugins,
         "run backends on copies of their inputs and on marked outputs, and tell which one writes what it may not or leaves out what it must; slow"},
    Flag{"runtime.threads", "TENON_THREADS", &Config::threads, "threads that run kernels; 0: as many as torch.set_num_threads says, or as the machine has"},
    Flag{"runtime.pool_bytes", "TENON_POOL_BYTES", &Config::pool_bytes, "memory that is kept for reuse between calls; by default a quarter of the machine's, at least 2 GiB and at most 8"},
    Flag{"runtime.profile", "TENON_PROFILE", &Config::profile, "time every step of every run, small ones too"},
    Flag{"cache.enabled", "TENON_CACHE", &Config::cache, "keep compiled code and probe verdicts on disk"},
    Flag{"cache.directory", "TENON_CACHE_DIR", &Config::cache_directory, "where; empty: in the user's cache directory", true},
    Flag{"cache.bytes", "TENON_CACHE_BYTES", &Config::cache_bytes, "how much of compiled code is kept on disk"},
    Flag{"diagnostics.progress", "TENON_PROGRESS", &Config::progress,
         "tell on stderr of a compile that takes more than a second: always, never, or auto: where stderr is a terminal"},
    Flag{"diagnostics.trace", "TENON_TRACE", &Config::trace,
         "write captures, compiles, calls and kernels as a trace in Chrome's format to this file (\"%p\" in it: the number of the process)", true},
    Flag{"diagnostics.perf", "TENON_PERF", &Config::perf,
         "tell Linux perf of generated code: map (names, in /tmp/perf-PID.map) or jitdump (names, code and lines, in jit-PID.dump here)"},
    Flag{"diagnostics.logs", "TENON_LOGS", &Config::logs, "logs that are written to stderr; \"all\" for every one"},
};

}  // namespace

std::string Flag::section() const {
  const char* dot = std::strchr(key, '.');
  return dot ? std::string(key, dot) : std::string();
}

std::string Flag::name() const {
  const char* dot = std::strchr(key, '.');
  return dot ? dot + 1 : key;
}

const char* Flag::type() const {
  constexpr const char* names[] = {"boolean", "integer", "integer", "number", "text", "list"};
  static_assert(std::size(names) == std::variant_size_v<Member>);
  return names[member.index()];
}

std::span<const Flag> all_flags() { return kFlags; }

std::optional<std::string> environment(const char* name) {
  const char* value = secure_getenv(name);
  if (!value) return std::nullopt;
  return value;
}

std::vector<std::string> variables(std::string_view prefix) {
  std::vector<std::string> names;
  if (getauxval(AT_SECURE)) return names;
  for (char** entry = environ; entry && *entry; ++entry)
    if (const std::string_view text(*entry); text.starts_with(prefix)) names.emplace_back(text.substr(0, text.find('=')));
  std::ranges::sort(names);
  return names;
}

}  // namespace tenon::host
