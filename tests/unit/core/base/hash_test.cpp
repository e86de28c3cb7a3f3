#include "core/base/hash.h"

#include <set>

#include "catch.h"

using tenon::content_hash;
using tenon::Hash128;

TEST_CASE("the content hash is MurmurHash3_x64_128") {
  // Values of the reference implementation.
  CHECK(content_hash("") == Hash128{0, 0});
  CHECK(content_hash("The quick brown fox jumps over the lazy dog").hex() == "e34bbc7bbc071b6c7a433ca9c49a9347");
  CHECK(content_hash("hello").hex() == "cbd8a7b341bd9b025b1e906a48ae1d19");
}

TEST_CASE("every byte, the length and the seed count") {
  std::set<Hash128> seen;
  std::string text(64, 'a');
  for (std::size_t size = 0; size <= text.size(); ++size) seen.insert(content_hash(std::string_view(text).substr(0, size)));
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::string changed = text;
    changed[i] = 'b';
    seen.insert(content_hash(changed));
  }
  seen.insert(content_hash(text, 1));
  CHECK(seen.size() == 65 + 64 + 1);
}
