#include "host/passes/pass_result.h"

#include <algorithm>

#include "core/ir/buffer.h"
#include "host/plugins/contact/crossing.h"
#include "host/plugins/contact/given_tensor.h"
#include "host/plugins/contact/plugin_call.h"
#include "host/plugins/registry/backend_instance.h"

namespace tenon::host {
namespace {

/// Receives what the passes give back. Called by the plugin: does not throw.
class Receiver {
 public:
  Receiver(const TenonGraph& before, const TenonHost* watched) : before_(before), watched_(watched) {}

  TenonPassResult table() { return {sizeof(TenonPassResult), this, &Receiver::take}; }
  const std::optional<Result<PassOutcome>>& outcome() const { return outcome_; }
  Result<PassOutcome> release() { return std::move(*outcome_); }

 private:
  static void take(void* self, TenonBytes buffer, const std::uint32_t* constants, std::size_t count, DLManagedTensorVersioned* const* fresh, std::size_t fresh_count) {
    auto& receiver = *static_cast<Receiver*>(self);
    try {
      receiver.outcome_ = receiver.taken(buffer, constants, count, fresh, fresh_count);
    } catch (const std::exception& e) {
      receiver.outcome_ = error(Code::plugin_failed, "{}", e.what());
    }
  }

  Result<PassOutcome> taken(TenonBytes buffer, const std::uint32_t* constants, std::size_t count, DLManagedTensorVersioned* const* fresh, std::size_t fresh_count) {
    if (std::string defect = defect_of_given(buffer, constants, count, fresh, fresh_count); !defect.empty()) return Error{Code::plugin_failed, std::move(defect)};
    return read(buffer, {constants, count}, {fresh, fresh_count});
  }

  Result<PassOutcome> read(TenonBytes buffer, std::span<const std::uint32_t> constants, std::span<DLManagedTensorVersioned* const> fresh) {
    PassOutcome outcome;
    for (DLManagedTensorVersioned* tensor : fresh) outcome.constants.push_back(owner_of(tensor, watched_));
    if (outcome_) return error(Code::plugin_failed, "it gave a graph twice");
    for (std::size_t i = 0; i < fresh.size(); ++i)
      if (const std::string defect = defect_of(fresh[i]); !defect.empty()) return error(Code::plugin_failed, "its new constant {} {}", i, defect);
    std::vector<const DLTensor*> tensors;
    std::size_t next = 0;
    for (std::uint32_t index : constants) {
      if (index == ~0u ? next == fresh.size() : index >= before_.constant_count)
        return error(Code::plugin_failed, "constant {} of its graph is {}", tensors.size(),
                     index == ~0u ? fmt::format("new, and it gave only {} new ones", fresh.size()) : fmt::format("old constant {} of {}", index, before_.constant_count));
      tensors.push_back(index == ~0u ? &fresh[next++]->dl_tensor : before_.constants[index]);
    }
    // The reader wants an aligned buffer; a plugin's may be anywhere.
    const std::vector<std::uint64_t> aligned = copy_of(buffer);
    Result<ir::Graph> graph = ir::read_buffer({reinterpret_cast<const std::uint8_t*>(aligned.data()), buffer.size}, tensors);
    if (!graph) return error(Code::plugin_failed, "the graph that it gave back is damaged: {}", graph.error().message);
    outcome.graph = *std::move(graph);
    return outcome;
  }

  static std::vector<std::uint64_t> copy_of(TenonBytes buffer) {
    std::vector<std::uint64_t> words(buffer.size / 8 + 1);
    if (buffer.size) std::copy_n(buffer.data, buffer.size, reinterpret_cast<std::uint8_t*>(words.data()));
    return words;
  }

  const TenonGraph& before_;
  const TenonHost* watched_;
  std::optional<Result<PassOutcome>> outcome_;
};

}  // namespace

Result<PassOutcome> call_passes(const Plugin& plugin, const std::vector<std::string>& passes, const ir::Graph& graph, const std::string& options) {
  ConstantStore constants;
  const Crossing crossing(graph, constants);
  std::vector<const char*> names;
  for (const std::string& pass : passes) names.push_back(pass.c_str());
  Receiver receiver(crossing.graph(), plugin.watched());
  const TenonPassResult result = receiver.table();
  take_report();
  std::int32_t code;
  {
    const CompileScope scope(crossing.graph());
    code = call_plugin(plugin.watched(), "a pass", [&] {
      return plugin.descriptor->passes->run(plugin.table, names.data(), names.size(), &crossing.graph(), options.c_str(), &result);
    });
  }
  if (code != TENON_OK) return plugin_error(code, "the pass");
  if (!receiver.outcome()) return PassOutcome{};
  return receiver.release();
}

}  // namespace tenon::host
