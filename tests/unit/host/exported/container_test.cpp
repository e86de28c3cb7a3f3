// The container of exported programs: what is written is read back, and no damaged byte passes.
#include "host/exported/container.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "catch.h"
#include "core/base/error.h"

using namespace tenon;
using namespace tenon::host;
using Catch::Contains;

namespace {

/// A file in a folder of its own that goes with it.
class TemporaryFile {
 public:
  TemporaryFile() : folder_(std::filesystem::temp_directory_path() / ("tenon_container_" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(folder_);
  }
  ~TemporaryFile() { std::filesystem::remove_all(folder_); }

  std::string path() const { return (folder_ / "program.tnx").string(); }
  std::size_t files_beside() const { return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder_), {})) - 1; }
  std::string bytes() const {
    std::ifstream file(path(), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void write(const std::string& bytes) const { std::ofstream(path(), std::ios::binary | std::ios::trunc) << bytes; }

 private:
  std::filesystem::path folder_;
};

const std::string kBig(1000, 'x');

void write_sample(const TemporaryFile& file) {
  const SectionToWrite sections[] = {{"first", {"one"}}, {"empty", {}}, {"pieces", {"ab", kBig, "", "cd"}}};
  write_container(file.path(), sections);
}

std::string why_refused(const TemporaryFile& file, const std::string& bytes) {
  file.write(bytes);
  try {
    Container::read(file.path());
  } catch (const Exception& refusal) {
    CHECK((refusal.code() == Code::malformed || refusal.code() == Code::incompatible));
    return refusal.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a container gives back its sections") {
  const TemporaryFile file;
  write_sample(file);
  CHECK(file.files_beside() == 0);
  const Container read = Container::read(file.path());
  CHECK(read.section("first") == "one");
  CHECK(read.section("empty").empty());
  const std::string_view pieces = read.section("pieces");
  CHECK(pieces.substr(0, 2) == "ab");
  CHECK(pieces.substr(kSectionAlignment, kBig.size()) == kBig);
  CHECK(pieces.substr(1088) == "cd");
  for (const char* name : {"first", "pieces"}) CHECK(reinterpret_cast<std::uintptr_t>(read.section(name).data()) % kSectionAlignment == 0);
  CHECK_THROWS_WITH(read.section("other"), Contains("'other' is missing"));
}

TEST_CASE("a container cut off anywhere is refused") {
  const TemporaryFile file;
  write_sample(file);
  const std::string good = file.bytes();
  for (std::size_t size = 0; size < good.size(); ++size) {
    INFO(size);
    CHECK_FALSE(why_refused(file, good.substr(0, size)).empty());
  }
  CHECK_THAT(why_refused(file, good + "x"), Contains("something was added"));
  CHECK(why_refused(file, good).empty());
}

TEST_CASE("a container with any byte changed is refused, and the section is named") {
  const TemporaryFile file;
  write_sample(file);
  const std::string good = file.bytes();
  for (std::size_t at = 0; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0x41);
    INFO(at);
    CHECK_FALSE(why_refused(file, bad).empty());
  }
  std::string bad = good;
  bad[good.find("one")] = 'O';
  CHECK_THAT(why_refused(file, bad), Contains("'first' is damaged"));
  bad = good;
  bad[good.rfind("cd")] = 'C';
  CHECK_THAT(why_refused(file, bad), Contains("'pieces' is damaged"));
}

TEST_CASE("what is no container, and a folder that is not there, are said to be so") {
  const TemporaryFile file;
  CHECK_THAT(why_refused(file, ""), Contains("cut off (0 bytes)"));
  CHECK_THAT(why_refused(file, std::string(200, 'n')), Contains("does not begin like one"));
  CHECK_THROWS_WITH(write_container(file.path() + "/no/where", {}), Contains("cannot write"));
  CHECK_THROWS_WITH(Container::read(file.path() + ".gone"), Contains("cannot read"));
}
