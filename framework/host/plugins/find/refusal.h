// Why a plugin is not used: a code word for programs, a sentence for people.
#pragma once

#include <fmt/format.h>

#include <exception>
#include <string>
#include <utility>

namespace tenon::host {

/// The reasons are: unsafe_directory, unsafe_file, missing_directory, manifest_too_large, manifest_malformed, manifest_invalid,
/// path_escapes, missing_library, duplicate_name, disabled, empty, not_elf, wrong_class, wrong_machine, wrong_type, truncated,
/// too_large, size_mismatch, hash_mismatch, unresolved, no_entry, null_descriptor, refused_by_plugin, bad_magic, bad_size, abi_too_new, abi_too_old,
/// name_mismatch, kind_mismatch, bad_table, sanitizer, threw, aborted, exited, timed_out, segfault, stack_overflow, crashed,
/// call_failed, probe_missing, probe_failed, not_isolable.
struct Refusal {
  std::string reason;
  std::string text;
};

/// Thrown by the steps of loading; caught by the registry.
class Refused : public std::exception {
 public:
  explicit Refused(Refusal refusal) : refusal_(std::move(refusal)) {}
  template <class... Args>
  Refused(const char* reason, fmt::format_string<Args...> format, Args&&... args)
      : refusal_{reason, fmt::format(format, std::forward<Args>(args)...)} {}

  const Refusal& refusal() const { return refusal_; }
  const char* what() const noexcept override { return refusal_.text.c_str(); }

 private:
  Refusal refusal_;
};

}  // namespace tenon::host
