// Runs a user's program over faulty plugins: run_faults CASES RESULTS. Each line of CASES is a JSON object: "name", "plugin" (its
// configured backend), "overrides" of the configuration. The program negates numbers twice with that backend before the reference, then
// once without it. Each line of RESULTS says what came of one case; a case without a line took the process along.
#include <cfenv>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <xmmintrin.h>

#include "core/ir/buffer.h"
#include "core/ir/graph.h"
#include "tenon/embed.hpp"

using nlohmann::json;
using namespace tenon;

namespace {

constexpr std::int64_t kMarked = 1237;

ir::Graph negation() {
  const ir::Type type = ir::Type::tensor(DType::f32, {kMarked});
  ir::Graph graph;
  const ValueId x = graph.add_input(type, "x");
  const NodeId node = graph.add_node("neg", {x}, {}, {type});
  graph.add_output({graph.node(node).results[0]});
  return graph;
}

struct Owner {
  TenonSession* session = nullptr;
  ~Owner() {
    if (session) tenon_session_release(session);
  }
};

void fail() { throw std::runtime_error(tenon_last_error()->text); }

std::string config;  // an empty file, so that no other is read

void open(Owner& owner, const std::vector<std::string>& overrides, json& events) {
  std::vector<const char*> words;
  for (const std::string& word : overrides) words.push_back(word.c_str());
  const TenonSessionOptions options{sizeof options, config.c_str(), words.data(), words.size()};
  if (tenon_session_create(&options, &owner.session) != TENON_OK) fail();
  tenon_session_on_event(owner.session, [](void* to, const char* text) { static_cast<json*>(to)->push_back(json::parse(text)); }, &events);
}

/// True when -x comes out.
bool negates(TenonSession* session) {
  const std::vector<std::uint8_t> buffer = ir::write_buffer(negation());
  TenonCompileRequest request{};
  request.struct_size = sizeof request;
  request.graph = {sizeof(TenonGraph), ir::bytes_of(buffer), nullptr, 0};
  TenonProgram* program = nullptr;
  if (tenon_compile(session, &request, &program) != TENON_OK) fail();
  std::vector<float> x(kMarked), y(kMarked, 7.0F);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i) - 99.5F;
  const void* inputs[] = {x.data()};
  void* outputs[] = {y.data()};
  TenonRunArgs args{};
  args.struct_size = sizeof args;
  args.inputs = inputs;
  args.outputs = outputs;
  bool right = true;
  for (int run = 0; run < 2; ++run) {
    if (tenon_program_run(program, &args) != TENON_OK) fail();
    for (std::size_t i = 0; i < x.size(); ++i) right = right && y[i] == -x[i];
    std::fill(y.begin(), y.end(), 7.0F);
  }
  tenon_program_release(program);
  return right;
}

json run(const json& given) {
  json result = {{"name", given["name"]}, {"events", json::array()}};
  try {
    Owner owner;
    open(owner, given["overrides"], result["events"]);
    result["first"] = negates(owner.session);
    result["second"] = negates(owner.session);
    char* text = nullptr;
    if (tenon_session_query(owner.session, ("plugin:" + given["plugin"].get<std::string>()).c_str(), &text) == TENON_OK) {
      result["plugin"] = json::parse(text)["plugins"].back();
      tenon_free(text);
    }
  } catch (const std::exception& problem) {
    result["error"] = problem.what();
  }
  result["arithmetic"] = std::fegetround() == FE_TONEAREST && (_mm_getcsr() & 0x8040) == 0;
  try {
    Owner owner;
    json ignored = json::array();
    open(owner, {"compile.backends=reference", "cache.enabled=false"}, ignored);
    result["afterwards"] = negates(owner.session);
  } catch (const std::exception& problem) {
    result["afterwards"] = problem.what();
  }
  return result;
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 3) return 2;
  config = arguments[1] + std::string(".toml");
  std::ofstream{config};
  std::ifstream cases(arguments[1]);
  std::ofstream results(arguments[2], std::ios::app);
  for (std::string line; std::getline(cases, line);) results << run(json::parse(line)).dump() << std::endl;
  return 0;
}
