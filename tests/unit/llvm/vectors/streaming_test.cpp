// Kernels that write more than the caches hold: stores around the cache, loads asked for early.
#include <string>

#include "catch.h"
#include "core/ir/parser.h"
#include "unit/llvm/running.h"

using namespace tenon;

namespace {

/// The listing of x + 1 on so many rows of 1024.
std::string code_for(int rows) {
  llvm_test::take_log();
  llvm_test::Choice choice;
  choice.log = true;
  llvm_test::compile(ir::parse_graph(fmt::format("graph @main (%x: f32[{0}, 1024]) {{\n%y: f32[{0}, 1024] = add(%x, 1.5)\nreturn %y\n}}", rows)).value(), choice);
  std::string all;
  for (const std::string& line : llvm_test::take_log()) all += line;
  return all;
}

bool contains(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("only large results are stored around the cache, and their operands fetched ahead") {
  const std::string large = code_for(16384), small = code_for(16383 / 2);
  CHECK((contains(large, "!nontemporal") && contains(large, "llvm.prefetch")));
  CHECK((!contains(small, "!nontemporal") && !contains(small, "llvm.prefetch")));
}
