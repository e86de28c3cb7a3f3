// Remembers what the probe said of a library, by the library's content.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "host/plugins/find/file.h"
#include "host/plugins/find/manifest.h"
#include "host/plugins/find/refusal.h"
#include "host/store/private_folder.h"

namespace tenon::host {

/// What the helper found out about a usable library.
struct ProbeVerdict {
  TenonKind kind = TENON_KIND_BACKEND;
  std::vector<std::string> passes;  // that its table has
};

/// A verdict of earlier: usable, or refused.
struct StoredVerdict {
  std::optional<ProbeVerdict> usable;
  Refusal refusal;
};

/// Verdicts in the user's cache directory. That a library is usable is believed until library, probe or Tenon change; that it is
/// not only for ten minutes, since its reason may lie outside of it (a library that it needs, a busy machine). A verdict that is damaged is none.
class VerdictStore {
 public:
  /// `folder` may be empty: then nothing is remembered. `probe_program` is part of every key.
  VerdictStore(const std::string& folder, const std::string& probe_program);

  /// The content hash of an open library; the file is only read when its identity (inode, size, times) is not known.
  std::string content_hash(int fd);
  /// Of the library with these options.
  std::optional<StoredVerdict> find(const std::string& content_hash, const Manifest& manifest, const std::string& options) const;
  void store(const std::string& content_hash, const Manifest& manifest, const std::string& options, const StoredVerdict& verdict) const;
  /// Forgets all of them; gives how many there were.
  std::uint64_t clear() const;

 private:
  std::string file_name(const std::string& content_hash, const Manifest& manifest, const std::string& options) const;

  PrivateFolder folder_;
  std::string host_identity_;
};

}  // namespace tenon::host
