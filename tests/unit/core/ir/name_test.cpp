#include "core/ir/name.h"

#include <algorithm>
#include <thread>
#include <vector>

#include "catch.h"

using tenon::ir::Name;

TEST_CASE("a word is stored once and keeps its number and its text", "[name]") {
  const Name first("a_word_of_this_test"), second(std::string("a_word_of_this_test")), other("another_word_of_this_test");
  CHECK(first == second);
  CHECK(first.number() == second.number());
  CHECK(&first.text() == &second.text());
  CHECK(first.text() == "a_word_of_this_test");
  CHECK(first != other);
  CHECK(first.number() != other.number());
  CHECK(first == "a_word_of_this_test");
  CHECK(first != std::string("a_word"));
  CHECK(Name() == "");
  CHECK(Name().empty());
  CHECK(Name() == Name(""));
  CHECK(fmt::format("{}", first) == "a_word_of_this_test");
}

TEST_CASE("names are ordered by their texts, whichever was stored first", "[name]") {
  const Name later("order_b"), earlier("order_a"), longer("order_aa");
  std::vector<Name> names{later, longer, earlier};
  std::sort(names.begin(), names.end());
  CHECK(names == std::vector<Name>{"order_a", "order_aa", "order_b"});
}

TEST_CASE("threads that store the same words get the same names", "[name]") {
  std::vector<std::vector<std::uint32_t>> numbers(4);
  {
    std::vector<std::jthread> threads;
    for (auto& own : numbers)
      threads.emplace_back([&own] {
        for (int i = 0; i < 500; ++i) own.push_back(Name(fmt::format("word_{}", i)).number());
      });
  }
  for (const auto& own : numbers) CHECK(own == numbers[0]);
  std::sort(numbers[0].begin(), numbers[0].end());
  CHECK(std::adjacent_find(numbers[0].begin(), numbers[0].end()) == numbers[0].end());
}
