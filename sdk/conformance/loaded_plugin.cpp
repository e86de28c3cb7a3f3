#include "loaded_plugin.h"

#include <dlfcn.h>

#include <filesystem>

#include "core/base/error.h"
#include "core/base/float_control.h"

namespace tenon::conformance {

const TenonPlugin& load_plugin(const std::string& path, const TenonHost& host) {
  const FloatControl before = FloatControl::current();
  // A path without a slash would be looked for in the system's library folders.
  const std::string absolute = std::filesystem::absolute(path);
  if (!std::filesystem::is_regular_file(absolute)) throw Exception(error(Code::not_found, "cannot be loaded: there is no regular file {}", path));
  void* library = dlopen(absolute.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (!library) throw Exception(error(Code::incompatible, "cannot be loaded: {}", dlerror()));
  const auto entry = reinterpret_cast<TenonPluginEntry>(dlsym(library, TENON_PLUGIN_ENTRY));
  if (!entry) throw Exception(error(Code::incompatible, "{} exports no {}", path, TENON_PLUGIN_ENTRY));

  TenonOffer offer{};
  offer.struct_size = sizeof offer;
  offer.abi_oldest = TENON_ABI_OLDEST;
  offer.abi_newest = TENON_ABI_NEWEST;
  offer.host = &host;
  const TenonPlugin* plugin = entry(&offer);
  if (!plugin) throw Exception(error(Code::incompatible, "the plugin refuses: {}", offer.refusal));
  if (plugin->magic != TENON_PLUGIN_MAGIC || plugin->struct_size < sizeof(TenonPlugin))
    throw Exception(error(Code::incompatible, "the plugin's descriptor is damaged"));
  if (const FloatControl after = FloatControl::current(); after != before) {
    before.restore();
    throw Exception(error(Code::incompatible, "loading it leaves {} changed (-ffast-math does that when it links)", before.difference(after)));
  }
  return *plugin;
}

}  // namespace tenon::conformance
