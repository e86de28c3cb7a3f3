#include "host/plugins/contact/descriptor_check.h"

#include <algorithm>
#include <cstring>

#include "core/abi/struct_size.h"
#include "host/plugins/find/refusal.h"

namespace tenon::host {
namespace {

/// No table of this contract comes near; a larger size is no size.
constexpr std::size_t kLargestStruct = 64 * 1024;

void check_size(const char* what, std::size_t size, std::size_t least) {
  if (size < least) throw Refused("bad_size", "its {} has {} bytes; the host needs {}", what, size, least);
  if (size > kLargestStruct) throw Refused("bad_size", "its {} says that it has {} bytes", what, size);
}

void check_version(const TenonPlugin& plugin) {
  if (plugin.abi > TENON_ABI_NEWEST)
    throw Refused("abi_too_new", "was built for ABI {}; this host offers {} to {}: a newer Tenon is needed", plugin.abi, TENON_ABI_OLDEST, TENON_ABI_NEWEST);
  if (plugin.abi < TENON_ABI_OLDEST)
    throw Refused("abi_too_old", "was built for ABI {}; this host offers {} to {}: build the plugin with a newer SDK", plugin.abi, TENON_ABI_OLDEST,
                  TENON_ABI_NEWEST);
}

void check_strings(const TenonPlugin& plugin) {
  const std::pair<const char*, const char*> strings[] = {{"name", plugin.name}, {"version", plugin.version}, {"build_id", plugin.build_id},
                                                         {"sanitizer", plugin.sanitizer}, {"description", plugin.description}};
  for (const auto& [what, text] : strings)
    if (!text) throw Refused("bad_table", "the {} of its descriptor is null", what);
}

void check_identity(const TenonPlugin& plugin, const Manifest& manifest) {
  if (plugin.name != manifest.name)
    throw Refused("name_mismatch", "its descriptor has the name \"{}\", its manifest \"{}\"", plugin.name, manifest.name);
  if (plugin.kind < TENON_KIND_FRONTEND || plugin.kind > TENON_KIND_BACKEND) throw Refused("kind_mismatch", "its descriptor has the unknown kind {}", plugin.kind);
  const auto kind = static_cast<TenonKind>(plugin.kind);
  if (manifest.kind && *manifest.kind != kind)
    throw Refused("kind_mismatch", "its descriptor says {}, its manifest {}", kind_name(kind), kind_name(*manifest.kind));
}

/// A library with a sanitizer in a process without one aborts; the other way round works.
void check_sanitizer(const TenonPlugin& plugin) {
  if (*plugin.sanitizer && std::strcmp(plugin.sanitizer, TENON_SANITIZER) != 0)
    throw Refused("sanitizer", "was built with the {} sanitizer, this host {}", plugin.sanitizer,
                  *TENON_SANITIZER ? "with the " TENON_SANITIZER " sanitizer" : "without one");
}

void check_backend(const TenonBackend* backend) {
  if (!backend) throw Refused("bad_table", "is a backend without a backend table");
  check_size("backend table", backend->struct_size, TENON_SIZE_THROUGH(TenonBackend, load));
  const std::pair<const char*, bool> functions[] = {{"create", backend->create},   {"destroy", backend->destroy}, {"claim", backend->claim},
                                                    {"compile", backend->compile}, {"execute", backend->execute}, {"release", backend->release}};
  for (const auto& [name, there] : functions)
    if (!there) throw Refused("bad_table", "the function \"{}\" of its backend table is null", name);
  if (!backend->devices || backend->device_count == 0) throw Refused("bad_table", "its backend table names no device");
  if (backend->device_count > 1024) throw Refused("bad_table", "its backend table says that it names {} devices", backend->device_count);
  if (!backend->serialise != !backend->load) throw Refused("bad_table", "its backend table has only one of \"serialise\" and \"load\"");
}

void check_passes(const TenonPassTable* passes, const Manifest& manifest) {
  if (!passes) throw Refused("bad_table", "is a plugin of passes without a pass table");
  check_size("pass table", passes->struct_size, TENON_SIZE_THROUGH(TenonPassTable, run));
  if (!passes->run || !passes->names || !passes->docs || passes->count == 0) throw Refused("bad_table", "its pass table lacks names, docs or \"run\"");
  if (passes->count > 1024) throw Refused("bad_table", "its pass table says that it has {} passes", passes->count);
  for (std::size_t i = 0; i < passes->count; ++i)
    if (!passes->names[i] || !passes->docs[i]) throw Refused("bad_table", "pass {} of its table has no name or no line of documentation", i);
  for (const std::string& pass : manifest.passes)
    if (std::none_of(passes->names, passes->names + passes->count, [&](const char* name) { return pass == name; }))
      throw Refused("bad_table", "its manifest promises the pass \"{}\", its table does not have it", pass);
}

void check_frontend(const TenonFrontend* frontend) {
  if (!frontend) throw Refused("bad_table", "is a frontend without a frontend table");
  check_size("frontend table", frontend->struct_size, TENON_SIZE_THROUGH(TenonFrontend, capture_file));
}

}  // namespace

void check_descriptor(const TenonPlugin* descriptor, std::string_view refusal, const Manifest& manifest) {
  if (!descriptor && !refusal.empty())
    throw Refused("refused_by_plugin", "refuses this host: \"{}\"; the host offers ABI {} to {}", refusal, TENON_ABI_OLDEST, TENON_ABI_NEWEST);
  if (!descriptor) throw Refused("null_descriptor", "its entry returned null and gave no reason");
  if (!TENON_COVERS(descriptor, magic)) check_size("descriptor", descriptor->struct_size, TENON_SIZE_THROUGH(TenonPlugin, frontend));
  if (descriptor->magic != TENON_PLUGIN_MAGIC)
    throw Refused("bad_magic", "its descriptor begins with the wrong magic number {:#x}; a plugin's is {:#x}", descriptor->magic, TENON_PLUGIN_MAGIC);
  check_size("descriptor", descriptor->struct_size, TENON_SIZE_THROUGH(TenonPlugin, frontend));
  check_version(*descriptor);
  check_strings(*descriptor);
  check_identity(*descriptor, manifest);
  check_sanitizer(*descriptor);
  switch (static_cast<TenonKind>(descriptor->kind)) {
    case TENON_KIND_BACKEND: return check_backend(descriptor->backend);
    case TENON_KIND_PASSES: return check_passes(descriptor->passes, manifest);
    case TENON_KIND_FRONTEND: return check_frontend(descriptor->frontend);
  }
}

}  // namespace tenon::host
