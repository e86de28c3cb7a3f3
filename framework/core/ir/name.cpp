#include "core/ir/name.h"

#include <deque>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

namespace tenon::ir {
namespace {

class Words {
 public:
  explicit Words(const Name::Entry* empty) { by_text_.emplace(std::string_view(), empty); }

  const Name::Entry* find_or_store(std::string_view text) {
    {
      const std::shared_lock reading(mutex_);
      if (const auto it = by_text_.find(text); it != by_text_.end()) return it->second;
    }
    const std::unique_lock writing(mutex_);
    if (const auto it = by_text_.find(text); it != by_text_.end()) return it->second;
    entries_.push_back({std::string(text), static_cast<std::uint32_t>(by_text_.size())});
    const Name::Entry* entry = &entries_.back();
    by_text_.emplace(entry->text, entry);
    return entry;
  }

 private:
  std::shared_mutex mutex_;
  std::deque<Name::Entry> entries_;  // which stay where they are
  std::unordered_map<std::string_view, const Name::Entry*> by_text_;
};

/// Never destroyed: objects that live until the process ends may hold names.
Words& words(const Name::Entry* empty) {
  static Words& words = *new Words(empty);
  return words;
}

}  // namespace

const Name::Entry Name::kEmpty{};

Name::Name(std::string_view text) : entry_(words(&kEmpty).find_or_store(text)) {}

}  // namespace tenon::ir
