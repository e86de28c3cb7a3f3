// The calls of a backend's table in the helper: each is a step that is told, lets no exception out, and whose answer is checked.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/abi/plugin.h"

namespace tenon::probe {

/// How a call went: the plugin's code, and its words where it failed.
struct Outcome {
  std::int32_t code = TENON_OK;
  std::string text;

  bool ok() const { return code == TENON_OK; }
};

struct CollectedClaims {
  std::vector<std::vector<std::uint32_t>> groups;
  nlohmann::json refusals = nlohmann::json::array();  // {"node", "reason", "text"}
};

/// A backend's object made with certain options.
class Backend {
 public:
  Backend(const TenonBackend& table, const TenonHost* host) : table_(table), host_(host) {}
  /// The steps from here on are about that sample graph.
  void at_sample(std::size_t number) { suffix_ = " " + std::to_string(number); }

  Outcome create(const std::string& options);
  /// Does nothing where it brings no devices.
  Outcome open_devices();
  void destroy();
  Outcome claim(const TenonGraph& graph, const std::string& options, CollectedClaims& claims);
  /// After success `artefact.self` is not null.
  Outcome compile(const TenonGraph& graph, const std::string& options, TenonArtefact& artefact);
  Outcome load(const std::string& stored, TenonArtefact& artefact);
  Outcome workspace(const TenonArtefact& artefact, const std::int64_t* symbols, std::size_t& bytes);
  Outcome execute(const TenonArtefact& artefact, const TenonExecuteArgs& args);
  Outcome serialise(const TenonArtefact& artefact, std::string& stored);
  void release(const TenonArtefact& artefact);

  const TenonBackend& table() const { return table_; }

 private:
  template <class Call>
  Outcome step(const char* name, const Call& call);

  const TenonBackend& table_;
  const TenonHost* host_;
  void* self_ = nullptr;
  std::string suffix_;
};

}  // namespace tenon::probe
