// The one exported symbol of a plugin: negotiation of the contract's version, and the descriptor. Generated for every plugin.
#pragma once

#include <elf.h>
#include <link.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <string>
#include <type_traits>

#include "core/abi/plugin.h"
#include "core/abi/struct_size.h"

#if defined(__SANITIZE_ADDRESS__)
#define TENON_SANITIZER_TAG "address"
#elif defined(__SANITIZE_THREAD__)
#define TENON_SANITIZER_TAG "thread"
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TENON_SANITIZER_TAG "address"
#elif __has_feature(thread_sanitizer)
#define TENON_SANITIZER_TAG "thread"
#endif
#endif
#ifndef TENON_SANITIZER_TAG
#define TENON_SANITIZER_TAG ""
#endif

/// Opens the definition of the exported entry.
#define TENON_EXPORTED_ENTRY extern "C" __attribute__((visibility("default"))) const TenonPlugin* tenon_plugin_entry(TenonOffer* offer)

namespace tenon::detail {

/// The name, version and sentence of a plugin, as its author's one line gives them.
struct PluginWords {
  const char* name;
  const char* version;
  const char* description = "";
};

/// Appends the bytes of a GNU build id note in hexadecimal; false when the segment holds none.
inline bool append_build_id(const char* note, std::size_t size, std::string& text) {
  constexpr std::size_t kHeader = sizeof(ElfW(Nhdr));
  auto padded = [](std::size_t n) { return (n + 3) & ~std::size_t{3}; };
  while (size >= kHeader) {
    ElfW(Nhdr) header;
    std::memcpy(&header, note, kHeader);
    const std::size_t whole = kHeader + padded(header.n_namesz) + padded(header.n_descsz);
    if (whole > size) return false;
    if (header.n_type == NT_GNU_BUILD_ID && header.n_namesz == 4 && std::memcmp(note + kHeader, "GNU", 4) == 0) {
      const char* bytes = note + kHeader + padded(header.n_namesz);
      for (std::size_t i = 0; i < header.n_descsz; ++i) {
        char hex[3];
        std::snprintf(hex, sizeof hex, "%02x", static_cast<unsigned char>(bytes[i]));
        text += hex;
      }
      return true;
    }
    note += whole;
    size -= whole;
  }
  return false;
}

}  // namespace tenon::detail

namespace tenon {

/// The linker's content hash of the library that holds `address`: it changes with every change of the library, and equal builds have
/// equal ids. Empty when the library was linked without --build-id.
inline std::string build_id_of(const void* address) {
  struct Search {
    ElfW(Addr) address;
    std::string id;
  } search{reinterpret_cast<ElfW(Addr)>(address), {}};
  dl_iterate_phdr(
      [](dl_phdr_info* object, std::size_t, void* context) {
        auto& wanted = *static_cast<Search*>(context);
        const auto* begin = object->dlpi_phdr;
        const auto* end = begin + object->dlpi_phnum;
        const bool holds = std::any_of(begin, end, [&](const ElfW(Phdr) & segment) {
          const ElfW(Addr) start = object->dlpi_addr + segment.p_vaddr;
          return segment.p_type == PT_LOAD && wanted.address >= start && wanted.address < start + segment.p_memsz;
        });
        if (!holds) return 0;
        for (const auto* segment = begin; segment != end; ++segment)
          if (segment->p_type == PT_NOTE &&
              detail::append_build_id(reinterpret_cast<const char*>(object->dlpi_addr + segment->p_vaddr), segment->p_memsz, wanted.id))
            break;
        return 1;
      },
      &search);
  return search.id;
}

}  // namespace tenon

namespace tenon::detail {

/// Fills the part of a descriptor that every kind has. `address` is any object of the plugin's own library.
inline TenonPlugin describe(TenonKind kind, const PluginWords& words, const std::string& build_id) {
  TenonPlugin plugin{};
  plugin.struct_size = sizeof plugin;
  plugin.magic = TENON_PLUGIN_MAGIC;
  plugin.kind = kind;
  plugin.name = words.name;
  plugin.version = words.version;
  plugin.build_id = build_id.c_str();
  plugin.sanitizer = TENON_SANITIZER_TAG;
  plugin.description = words.description;
  return plugin;
}

/// Picks the highest version of the contract that both sides know. Null, with the offer's refusal filled, when there is none.
inline const TenonPlugin* negotiate(TenonOffer* offer, TenonPlugin& plugin) noexcept {
  if (!offer || !TENON_COVERS(offer, refusal)) return nullptr;
  const std::uint32_t newest = std::min<std::uint32_t>(offer->abi_newest, TENON_ABI_NEWEST);
  const std::uint32_t oldest = std::max<std::uint32_t>(offer->abi_oldest, TENON_ABI_OLDEST);
  if (newest < oldest) {
    std::snprintf(offer->refusal, sizeof offer->refusal, "%s %s speaks versions %u to %u of the plugin contract, the host %u to %u",
                  plugin.name, plugin.version, TENON_ABI_OLDEST, TENON_ABI_NEWEST, offer->abi_oldest, offer->abi_newest);
    return nullptr;
  }
  plugin.abi = newest;
  return &plugin;
}

/// The whole of an exported entry: `make` gives the descriptor, which lives as long as the library.
template <class Make>
const TenonPlugin* enter(TenonOffer* offer, Make&& make) noexcept {
  try {
    return negotiate(offer, make());
  } catch (...) {
    if (offer && TENON_COVERS(offer, refusal)) std::snprintf(offer->refusal, sizeof offer->refusal, "the plugin could not make its descriptor");
    return nullptr;
  }
}

}  // namespace tenon::detail
