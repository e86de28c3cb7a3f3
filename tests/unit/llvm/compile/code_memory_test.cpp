// Memory that code runs in: pieces share mappings, which go with the last of them, and none is ever writable where it is executed.
#include "compile/code_memory.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <deque>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "catch.h"

using namespace tenon;
using llvm_backend::CodePiece;
using llvm_backend::code_memory_use;
using llvm_backend::take_code_memory;

namespace {

/// A function that gives `value`.
std::vector<std::byte> code_of(std::int32_t value, std::size_t bytes = 6) {
  std::vector<std::byte> code(std::max<std::size_t>(bytes, 6), std::byte{0xcc});
  code[0] = std::byte{0xb8};  // mov eax, value
  std::memcpy(&code[1], &value, sizeof value);
  code[5] = std::byte{0xc3};  // ret
  return code;
}

std::unique_ptr<CodePiece> piece_of(std::int32_t value, std::size_t bytes = 6) {
  auto piece = take_code_memory(std::max<std::size_t>(bytes, 6));
  piece->write(code_of(value, bytes));
  return piece;
}

std::int32_t called(const CodePiece& piece) { return reinterpret_cast<std::int32_t (*)()>(piece.address())(); }

/// How /proc/self/maps describes the mapping that holds an address: "r-xs".
std::string protection_of(const void* address) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    unsigned long long first = 0, last = 0;
    char protection[5] = {};
    if (std::sscanf(line.c_str(), "%llx-%llx %4s", &first, &last, protection) != 3) continue;
    const auto place = reinterpret_cast<unsigned long long>(address);
    if (place >= first && place < last) return protection;
  }
  return {};
}

bool any_writable_and_executable() {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);)
    if (line.find(" rwx") != std::string::npos) return true;
  return false;
}

}  // namespace

TEST_CASE("pieces of code share mappings and are never writable", "[code_memory]") {
  const auto before = code_memory_use();
  std::vector<std::unique_ptr<CodePiece>> pieces;
  for (int i = 0; i < 2000; ++i) pieces.push_back(piece_of(i, 6 + static_cast<std::size_t>(i % 700)));
  for (int i = 0; i < 2000; ++i) REQUIRE(called(*pieces[static_cast<std::size_t>(i)]) == i);
  CHECK(code_memory_use().mappings <= before.mappings + 4);
  CHECK(protection_of(pieces[0]->address()).substr(0, 3) == "r-x");
  CHECK(!any_writable_and_executable());
  pieces.clear();
  CHECK(code_memory_use().taken == before.taken);
  CHECK(code_memory_use().mapped <= before.mapped + (1 << 20));
}

TEST_CASE("what was given back is taken again", "[code_memory]") {
  const auto before = code_memory_use();
  std::mt19937 random(7);
  std::deque<std::pair<int, std::unique_ptr<CodePiece>>> alive;
  for (int i = 0; i < 20'000; ++i) {
    alive.emplace_back(i, piece_of(i, 6 + random() % 5000));
    if (alive.size() <= 100) continue;
    const auto gone = static_cast<std::ptrdiff_t>(random() % alive.size());
    REQUIRE(called(*alive[static_cast<std::size_t>(gone)].second) == alive[static_cast<std::size_t>(gone)].first);
    alive.erase(alive.begin() + gone);
  }
  CHECK(code_memory_use().mapped <= before.mapped + (3 << 20));
}

TEST_CASE("a piece may be larger than a slab", "[code_memory]") {
  const auto before = code_memory_use();
  auto large = piece_of(5, 3 << 20), small = piece_of(6);
  CHECK(called(*large) == 5);
  CHECK(called(*small) == 6);
  large.reset();
  CHECK(code_memory_use().mapped <= before.mapped + (1 << 20));
}

TEST_CASE("a parent and its child write into no code of each other", "[code_memory]") {
  std::vector<std::unique_ptr<CodePiece>> pieces;
  for (int i = 0; i < 100; ++i) pieces.push_back(piece_of(i));
  int from_parent[2], from_child[2];
  REQUIRE(pipe(from_parent) == 0);
  REQUIRE(pipe(from_child) == 0);
  const pid_t child = fork();
  char go = 0;
  if (child == 0) {
    std::vector<std::unique_ptr<CodePiece>> own;
    for (int i = 0; i < 50; ++i) pieces[static_cast<std::size_t>(i)].reset();
    for (int i = 0; i < 200; ++i) own.push_back(piece_of(1000 + i));
    bool right = write(from_child[1], &go, 1) == 1 && read(from_parent[0], &go, 1) == 1;
    for (int i = 50; i < 100; ++i) right &= called(*pieces[static_cast<std::size_t>(i)]) == i;
    for (int i = 0; i < 200; ++i) right &= called(*own[static_cast<std::size_t>(i)]) == 1000 + i;
    _exit(right ? 0 : 1);
  }
  std::vector<std::unique_ptr<CodePiece>> own;
  REQUIRE(read(from_child[0], &go, 1) == 1);
  for (int i = 50; i < 100; ++i) pieces[static_cast<std::size_t>(i)].reset();
  for (int i = 0; i < 200; ++i) own.push_back(piece_of(2000 + i));
  REQUIRE(write(from_parent[1], &go, 1) == 1);
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  for (int i = 0; i < 50; ++i) CHECK(called(*pieces[static_cast<std::size_t>(i)]) == i);
  for (int i = 0; i < 200; ++i) CHECK(called(*own[static_cast<std::size_t>(i)]) == 2000 + i);
}
