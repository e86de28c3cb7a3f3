#include "host/plugins/registry/registry.h"

#include <fcntl.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "host/config/installation.h"
#include "host/diagnostics/suggestion.h"
#include "host/plugins/contact/descriptor_check.h"
#include "host/plugins/contact/library.h"
#include "host/plugins/find/elf_check.h"
#include "host/plugins/isolation/exit_report.h"
#include "host/plugins/registry/registry_state.h"

namespace tenon::host {

using nlohmann::json;

namespace {

constexpr const char* kFromFile = "plugins.paths";  // the source of directories that the configuration names
constexpr const char* kFromProcess = "process";  // the source of a plugin that was registered by this process

double milliseconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

bool ends_with(std::string_view text, std::string_view ending) {
  return text.size() >= ending.size() && text.substr(text.size() - ending.size()) == ending;
}

bool reads(const Candidate& candidate, std::string_view path) {
  const auto& suffixes = candidate.manifest.suffixes;
  return candidate.manifest.kind == TENON_KIND_FRONTEND && std::any_of(suffixes.begin(), suffixes.end(), [&](const auto& s) { return ends_with(path, s); });
}

bool offers(const Candidate& candidate, std::string_view pass) {
  const auto& passes = candidate.manifest.passes;
  return candidate.manifest.kind == TENON_KIND_PASSES && std::find(passes.begin(), passes.end(), pass) != passes.end();
}

std::string folder_for(const Config& config, const char* name) {
  const std::string folder = config.cache ? cache_folder(config.cache_directory) : std::string();
  return folder.empty() ? folder : folder + name;
}

}  // namespace

Registry::State::State(const Config& given, Events& given_events)
    : config(given), events(given_events), store(folder_for(given, "/store"), given.cache_bytes), verdicts(folder_for(given, ""), installation().probe_program) {
  // Before there is something to say: what is refused at discovery belongs into the log of plugins too.
  events.set_logs(joined(config.logs));
  if (const PrivateFolder& folder = store.folder(); !folder.problem().empty()) {
    events.emit({{"kind", "cache_refused"}, {"path", folder.path()}, {"text", folder.problem()}});
    events.warn_once("cache", fmt::format("compiled code is not kept on disk: {} {}", folder.path(), folder.problem()));
  }
  Discovery discovery = discover_plugins(config);
  directories = std::move(discovery.directories);
  for (auto& candidate : discovery.candidates) {
    if (candidate->state == PluginState::refused)
      events.emit({{"kind", "plugin_refused"}, {"plugin", candidate->manifest.name}, {"path", candidate->path()},
                   {"reason", candidate->refusal.reason}, {"text", candidate->refusal.text}});
    entries.push_back({std::move(candidate), nullptr, nullptr});
  }
  for (const SearchedDirectory& directory : directories) tell_refused(directory);
}

void Registry::State::tell_refused(const SearchedDirectory& directory) {
  if (!directory.refusal) return;
  events.emit({{"kind", "plugin_directory_refused"}, {"path", directory.path}, {"reason", directory.refusal->reason}, {"text", directory.refusal->text}});
  const std::string origin = directory.source == kFromFile ? config.origin_of("plugins.paths").text : directory.source;
  if (directory.trust == Trust::checked)  // somebody named it
    events.warn_once("plugins", fmt::format("{}: no plugins are searched in {}: {}{}", origin, directory.path, directory.refusal->text, nearest_path_text(directory.path)));
}

Registry::State::~State() {
  for (const Entry& entry : entries)
    if (entry.table) entry.table->detach();
}

/// Throws Refused for a library other than the one that the manifest was made for.
static void check_content(const Manifest& manifest, const std::string& hash) {
  if (!manifest.sha256.empty() && manifest.sha256 != hash)
    throw Refused("hash_mismatch", "is not the library that its manifest was made for: SHA-256 {} instead of {}", hash, manifest.sha256);
}

std::shared_ptr<const Helper> Registry::State::helper_for(const Candidate& candidate, int fd) const {
  const std::string& program = installation().probe_program;
  if (program.empty()) throw Refused("probe_missing", "cannot be tried first: the program tenon-probe is not beside this installation (plugins.probe = false loads without)");
  const json settings = {{"cache", {{"directory", store.folder().usable() ? store.folder().path() : ""}, {"bytes", store.limit()}}}, {"logs", joined(config.logs)}};
  return std::make_shared<Helper>(program, candidate.manifest, Descriptor(::fcntl(fd, F_DUPFD_CLOEXEC, 10)), settings);
}

/// Throws Refused for a backend whose artefacts cannot leave the helper.
std::shared_ptr<const Isolation> Registry::State::isolation_of(Candidate& candidate, const TenonPlugin& descriptor, std::shared_ptr<const Helper> helper) const {
  if (!config.isolate || !helper || !descriptor.backend) return nullptr;
  if (!descriptor.backend->serialise || !descriptor.backend->load)
    throw Refused("not_isolable", "stores no artefacts, so that it can only compile in this process, and plugins.isolate forbids that");
  candidate.decide("claims and compiles in a helper process");
  return std::make_shared<Isolation>(std::move(helper), config.isolate_seconds, events);
}

void Registry::State::load_or_throw(Entry& entry) {
  Candidate& candidate = *entry.candidate;
  if (candidate.manifest.library.empty()) throw Refused("missing_library", "is a program ({}), not a library", joined(candidate.manifest.program));
  const Descriptor directory = open_directory(candidate.directory, candidate.trust);
  Descriptor file = open_file_in(directory, candidate.manifest.library, candidate.trust);
  if (const std::uint64_t size = identity_of(file.get()).size; candidate.manifest.size.value_or(size) != size)
    throw Refused("size_mismatch", "is not the library that its manifest was made for: {} bytes instead of {}", size, *candidate.manifest.size);
  candidate.decide("the file is " + check_elf(file.get()));
  std::shared_ptr<const Helper> helper;
  std::shared_ptr<const Probe> probe;
  if (candidate.trust == Trust::own) {
    candidate.decide("not probed: it is part of this installation");
  } else if (!config.probe && !config.isolate) {
    candidate.decide("not probed: plugins.probe is off");
  } else {
    const std::string hash = verdicts.content_hash(file.get());
    check_content(candidate.manifest, hash);
    helper = helper_for(candidate, file.get());
    probe = std::make_shared<Probe>(helper, hash, config.probe_seconds, verdicts, events);
    candidate.decide(probe->pass(json::parse(config.plugin_options(candidate.manifest.name)).dump()));
  }
  const auto start = std::chrono::steady_clock::now();
  if (candidate.trust != Trust::own) report_exits();
  const TenonPlugin* descriptor = load_library(std::move(file), candidate.manifest);
  if (candidate.trust != Trust::own) report_exits();
  const double milliseconds = milliseconds_since(start);
  std::shared_ptr<const Isolation> isolation = isolation_of(candidate, *descriptor, std::move(helper));
  make_plugin(entry, descriptor, candidate.path());
  entry.plugin->probe = std::move(probe);
  entry.plugin->isolation = std::move(isolation);
  candidate.decide(fmt::format("loaded in {:.1f} ms: {} {}, ABI {}", milliseconds, entry.plugin->name, entry.plugin->version, descriptor->abi));
  events.emit({{"kind", "plugin_loaded"}, {"plugin", entry.plugin->name}, {"path", entry.plugin->path}, {"milliseconds", milliseconds}});
}

/// A plugin that the process registers is ours where one of our manifests announces it.
bool Registry::State::is_own(const Candidate& candidate) const {
  if (candidate.source != kFromProcess) return candidate.trust == Trust::own;
  return std::any_of(entries.begin(), entries.end(), [&](const Entry& entry) {
    const Candidate& driver = *entry.candidate;
    return driver.trust == Trust::own && (driver.manifest.name == candidate.manifest.name || contains(driver.manifest.provides, candidate.manifest.name));
  });
}

const Plugin* Registry::State::make_plugin(Entry& entry, const TenonPlugin* descriptor, std::string path) {
  const bool own = is_own(*entry.candidate);
  entry.table = &HostTable::make_lasting(descriptor->name, descriptor->abi, &events, &store, own);
  entry.plugin = std::make_unique<Plugin>();
  *entry.plugin = {descriptor->name, descriptor->version, descriptor->build_id, std::move(path), static_cast<TenonKind>(descriptor->kind), descriptor,
                   entry.table->functions(), nullptr, nullptr, own};
  Manifest& manifest = entry.candidate->manifest;
  manifest.kind = entry.plugin->kind;
  manifest.version = descriptor->version;
  if (manifest.passes.empty() && descriptor->passes) manifest.passes.assign(descriptor->passes->names, descriptor->passes->names + descriptor->passes->count);
  entry.candidate->state = PluginState::loaded;
  return entry.plugin.get();
}

const Plugin* Registry::State::load(Entry& entry) {
  if (entry.candidate->state != PluginState::found) return entry.plugin.get();
  try {
    load_or_throw(entry);
  } catch (const Refused& refused) {
    entry.candidate->refuse(refused.refusal());
    events.emit({{"kind", "plugin_refused"}, {"plugin", entry.candidate->manifest.name}, {"path", entry.candidate->path()},
                 {"reason", refused.refusal().reason}, {"text", refused.refusal().text}});
  }
  return entry.plugin.get();
}

/// The first usable plugin that answers to `wanted`. Libraries whose kind is not known yet are loaded only when no manifest answers.
const Plugin* Registry::State::first_loaded(const std::function<bool(const Candidate&)>& wanted, TenonKind kind) {
  const std::lock_guard lock(mutex);
  for (const bool known_kind : {true, false}) {
    for (Entry& entry : entries) {
      if (entry.candidate->manifest.kind.has_value() != known_kind) continue;
      if (known_kind && !wanted(*entry.candidate)) continue;
      const Plugin* plugin = load(entry);
      if (plugin && plugin->kind == kind && wanted(*entry.candidate)) return plugin;
    }
  }
  return nullptr;
}

std::vector<std::string> Registry::State::names(TenonKind kind) const {
  std::vector<std::string> result;
  for (const Entry& entry : entries) {
    const Candidate& candidate = *entry.candidate;
    if (candidate.state == PluginState::refused || candidate.state == PluginState::disabled) continue;
    if (!candidate.manifest.kind || candidate.manifest.kind == kind) result.push_back(candidate.manifest.name);
    if (kind == TENON_KIND_BACKEND)
      for (const std::string& name : candidate.manifest.provides)
        if (std::find(result.begin(), result.end(), name) == result.end()) result.push_back(name);
  }
  return result;
}

std::vector<std::string> Registry::State::passes() const {
  std::vector<std::string> result;
  for (const Entry& entry : entries)
    if (entry.candidate->state == PluginState::found || entry.candidate->state == PluginState::loaded)
      for (const std::string& pass : entry.candidate->manifest.passes)
        if (std::find(result.begin(), result.end(), pass) == result.end()) result.push_back(pass);
  return result;
}

std::string Registry::State::refused_directories() const {
  std::string text;
  for (const SearchedDirectory& directory : directories)
    if (directory.refusal) text += fmt::format("; not searched: {} ({}: {})", directory.path, directory.refusal->reason, directory.refusal->text);
  return text;
}

Registry::Registry(const Config& config, Events& events) : state_(std::make_unique<State>(config, events)) {}
Registry::~Registry() = default;

const Plugin* Registry::backend(std::string_view name) {
  // By name at once, so that a library without a manifest is loaded only when it is the one that is meant.
  {
    const std::lock_guard lock(state_->mutex);
    for (Entry& entry : state_->entries) {
      const Manifest& manifest = entry.candidate->manifest;
      if (manifest.name != name || (manifest.kind && manifest.kind != TENON_KIND_BACKEND)) continue;
      const Plugin* plugin = state_->load(entry);
      if (plugin && plugin->kind == TENON_KIND_BACKEND) return plugin;
    }
  }
  return nullptr;
}

const Plugin* Registry::pass(std::string_view pass_name) {
  return state_->first_loaded([&](const Candidate& c) { return offers(c, pass_name); }, TENON_KIND_PASSES);
}

const Plugin* Registry::frontend_for(std::string_view path) {
  return state_->first_loaded([&](const Candidate& c) { return reads(c, path) && !c.manifest.library.empty(); }, TENON_KIND_FRONTEND);
}

std::vector<std::string> Registry::driver_for(std::string_view path) const {
  const std::lock_guard lock(state_->mutex);
  for (const Entry& entry : state_->entries)
    if (entry.candidate->state == PluginState::found && reads(*entry.candidate, path) && !entry.candidate->manifest.program.empty())
      return entry.candidate->manifest.program;
  return {};
}

const Plugin& Registry::add(const TenonPlugin* in_process) {
  TENON_USER_CHECK(in_process && in_process->name, "a plugin of this process needs a descriptor with a name");
  auto candidate = std::make_unique<Candidate>();
  candidate->manifest.name = in_process->name;
  candidate->source = kFromProcess;
  try {
    check_descriptor(in_process, "", candidate->manifest);
  } catch (const Refused& refused) {
    throw Exception(Code::incompatible, fmt::format("plugin '{}' of this process cannot be used: {}", in_process->name, refused.what()));
  }
  const std::lock_guard lock(state_->mutex);
  for (const Entry& entry : state_->entries) {
    const Candidate& other = *entry.candidate;
    const bool alive = other.state == PluginState::found || other.state == PluginState::loaded;
    TENON_USER_CHECK(!alive || other.manifest.name != candidate->manifest.name || (other.manifest.kind && *other.manifest.kind != static_cast<TenonKind>(in_process->kind)),
                     "the name of a plugin of this process is taken by {}: {}", other.path().empty() ? "another of this process" : other.path(), other.manifest.name);
  }
  candidate->decide("registered by this process");
  Entry entry{std::move(candidate), nullptr, nullptr};
  state_->make_plugin(entry, in_process, "");
  state_->entries.push_back(std::move(entry));
  return *state_->entries.back().plugin;
}

json Registry::describe_cache() const {
  const PrivateFolder& folder = state_->store.folder();
  const ByteStore::Size size = state_->store.size();
  json result = {{"directory", folder.path()}, {"usable", folder.usable()}, {"entries", size.entries}, {"bytes", size.bytes}, {"limit", state_->store.limit()}};
  if (!folder.usable()) result["text"] = folder.path().empty() ? "it is switched off, or there is no directory for it" : folder.problem();
  return result;
}

std::uint64_t Registry::clear_cache() {
  const std::uint64_t verdicts = state_->verdicts.clear();  // first: the other says so when it cannot
  return verdicts + state_->store.clear().entries;
}

std::vector<std::string> Registry::backend_names() const {
  const std::lock_guard lock(state_->mutex);
  return state_->names(TENON_KIND_BACKEND);
}

std::vector<std::string> Registry::pass_names() const {
  const std::lock_guard lock(state_->mutex);
  return state_->passes();
}

}  // namespace tenon::host
