// The manifest of a plugin: a small JSON file beside the library, from which the host knows the plugin without loading it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/abi/plugin.h"

namespace tenon::host {

inline constexpr std::size_t kMaxManifestBytes = 64 * 1024;

struct Manifest {
  std::string name;
  std::optional<TenonKind> kind;  // absent: a library without a manifest, whose kind is known once it is loaded
  std::string library;            // a file name; empty for a driver, which is a program and no library of ours
  std::string version;
  std::string description;
  std::uint32_t abi_oldest = 0;        // the range that the plugin was built for; 0: not stated
  std::uint32_t abi_newest = 0;
  std::optional<std::uint64_t> size;   // of the library
  std::string sha256;                  // of the library; empty: not stated
  std::vector<std::string> passes;     // that a plugin of passes offers
  std::vector<std::string> suffixes;   // of the files that a frontend reads, with the dot
  std::vector<std::string> program;    // of a driver: what runs its files
  std::vector<std::string> provides;   // backends that a driver registers at run time
  std::optional<std::map<std::string, std::string>> options;  // keys of the plugin's section, with their JSON type; absent: not stated
};

/// Reads a manifest. Throws Refused: manifest_too_large, manifest_malformed (no JSON, or nested too deeply), manifest_invalid,
/// path_escapes.
Manifest parse_manifest(std::string_view text);

/// The manifest of a library that has none: named as the file, without "lib" and the ending.
Manifest manifest_of_bare_library(std::string_view file_name);

/// Throws Refused (abi_too_new, abi_too_old) when the range that the manifest states has nothing in common with the host's.
void check_abi_range(const Manifest& manifest);

const char* kind_name(TenonKind kind);

}  // namespace tenon::host
