#include "host/plugins/contact/library.h"

#include <dlfcn.h>

#include <boost/dll/shared_library.hpp>
#include <cstring>
#include <map>
#include <mutex>

#include "host/plugins/contact/descriptor_check.h"
#include "host/plugins/contact/host_table.h"
#include "host/plugins/contact/plugin_call.h"
#include "host/plugins/find/refusal.h"

namespace tenon::host {
namespace {

/// Boost's own defaults are lazy binding and unloading; neither does here: an undefined symbol must show at once, and code of an
/// unloaded library may still be on a thread's way.
constexpr auto kLoadMode = static_cast<boost::dll::load_mode::type>(RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);

struct Library {
  boost::dll::shared_library handle;
  const TenonPlugin* descriptor = nullptr;
  std::string refusal;
};

/// The libraries of the process, by file. Never destroyed: plugins may run until the process ends.
struct LibraryTable {
  std::mutex mutex;
  std::map<std::pair<dev_t, ino_t>, Library> libraries;
};

LibraryTable& table() {
  static auto* const instance = new LibraryTable;
  return *instance;
}

/// The linker's words, without the number under which the file was opened.
std::string linker_text(int fd, const char* text) {
  std::string result = text ? text : "the linker gives no reason";
  const std::string opened = fmt::format("/proc/self/fd/{}: ", fd);
  if (const std::size_t at = result.find(opened); at != std::string::npos) result.erase(at, opened.size());
  return result;
}

boost::dll::shared_library open_library(int fd) {
  boost::dll::shared_library handle;
  boost::dll::fs::error_code problem;
  handle.load(fmt::format("/proc/self/fd/{}", fd), problem, kLoadMode);
  if (problem) throw Refused("unresolved", "cannot be linked: {}", linker_text(fd, dlerror()));
  return handle;
}

void call_entry(Library& library, const HostTable& host) {
  if (!library.handle.has(TENON_PLUGIN_ENTRY)) throw Refused("no_entry", "has no entry: it does not export {}", TENON_PLUGIN_ENTRY);
  const auto entry = reinterpret_cast<TenonPluginEntry>(dlsym(library.handle.native(), TENON_PLUGIN_ENTRY));
  TenonOffer offer{sizeof offer, TENON_ABI_OLDEST, TENON_ABI_NEWEST, host.functions(), {}};
  try {
    library.descriptor = entry(&offer);
  } catch (const std::exception& thrown) {
    throw Refused("threw", "its entry threw an exception: {}", thrown.what());
  } catch (...) {
    throw Refused("threw", "its entry threw something that is no std::exception");
  }
  offer.refusal[sizeof offer.refusal - 1] = '\0';
  library.refusal = offer.refusal;
}

}  // namespace

const TenonPlugin* load_library(Descriptor file, const Manifest& manifest, LoadStep step) {
  const auto enter = [&](const char* name) {
    if (step) step(name);
  };
  const FileIdentity identity = identity_of(file.get());
  const std::lock_guard lock(table().mutex);
  auto found = table().libraries.find({identity.device, identity.inode});
  if (found == table().libraries.end()) {
    // The entry's table outlives all sessions, so it belongs to none; backends and passes get their session's with each call.
    const HostTable& host = HostTable::make_lasting(manifest.name, TENON_ABI_NEWEST);
    const CallWatch watch(host.functions(), "loading");  // -ffast-math links a constructor that flushes subnormal numbers
    enter("load");
    Library library;
    library.handle = open_library(file.get());
    file.release();
    enter("entry");
    call_entry(library, host);
    found = table().libraries.emplace(std::pair(identity.device, identity.inode), std::move(library)).first;
  }
  enter("check");
  check_descriptor(found->second.descriptor, found->second.refusal, manifest);
  return found->second.descriptor;
}

}  // namespace tenon::host
