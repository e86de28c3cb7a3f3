// The inside of the registry, shared by the files that implement it.
#pragma once

#include <algorithm>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "host/plugins/contact/host_table.h"
#include "host/plugins/find/discovery.h"
#include "host/plugins/isolation/isolation.h"
#include "host/plugins/isolation/probe.h"
#include "host/plugins/isolation/verdict_store.h"
#include "host/plugins/registry/registry.h"
#include "host/store/byte_store.h"

namespace tenon::host {

inline bool contains(const std::vector<std::string>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

/// A candidate with what becomes of it.
struct Entry {
  std::unique_ptr<Candidate> candidate;
  std::unique_ptr<Plugin> plugin;  // once it is loaded
  HostTable* table = nullptr;
};

struct Registry::State {
  State(const Config& config, Events& events);
  ~State();

  Config config;
  Events& events;
  ByteStore store;
  VerdictStore verdicts;
  mutable std::mutex mutex;  // guards everything below
  std::vector<Entry> entries;
  std::vector<SearchedDirectory> directories;

  /// Loads the entry unless that was tried before; null when it is refused or disabled.
  const Plugin* load(Entry& entry);
  const Plugin* first_loaded(const std::function<bool(const Candidate&)>& wanted, TenonKind kind);
  const Plugin* make_plugin(Entry& entry, const TenonPlugin* descriptor, std::string path);

  std::vector<std::string> names(TenonKind kind) const;
  std::vector<std::string> passes() const;
  /// What to add to a message about something that is not there: the directories that were refused.
  std::string refused_directories() const;

 private:
  bool is_own(const Candidate& candidate) const;
  void tell_refused(const SearchedDirectory& directory);
  void load_or_throw(Entry& entry);
  std::shared_ptr<const Helper> helper_for(const Candidate& candidate, int fd) const;
  std::shared_ptr<const Isolation> isolation_of(Candidate& candidate, const TenonPlugin& descriptor, std::shared_ptr<const Helper> helper) const;
};

}  // namespace tenon::host
