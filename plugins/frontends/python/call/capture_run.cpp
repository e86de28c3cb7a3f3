#include "python/call/capture_run.h"

#include <fmt/format.h>

#include <utility>

#include "python/tensors/tensor_recorder.h"

namespace tenon::python {
namespace {

std::string text_attribute(PyObject* object, const char* name) {
  Ref value = Ref::steal(PyObject_GetAttrString(object, name));
  const char* text = value && PyUnicode_Check(value.get()) ? PyUnicode_AsUTF8(value.get()) : nullptr;
  if (!text) PyErr_Clear();
  return text ? text : "";
}

}  // namespace

std::string name_of_callable(PyObject* callable) {
  for (const char* attribute : {"__qualname__", "__name__"})
    if (std::string text = text_attribute(callable, attribute); !text.empty()) return text;
  return Py_TYPE(callable)->tp_name;
}

namespace {

using Captured = std::variant<CacheEntry*, CaptureBreak>;

/// What a capture says about the next of the same call.
struct Outlook {
  bool learned = false;      // the capture must be repeated with what it has found out about numbers
  bool has_symbols = false;
};

Captured capture_once(PyObject* callable, const CallArguments& call, const TorchState& state, TensorRecorder::Numbers numbers, Outlook& outlook) {
  TensorRecorder recorder(state, numbers);
  struct Noting {
    TensorRecorder& recorder;
    Outlook& outlook;
    ~Noting() { outlook = {recorder.learned(), recorder.has_symbols()}; }
  } noting{recorder, outlook};
  auto captured = capture(callable, call, recorder);
  if (auto* broken = std::get_if<CaptureBreak>(&captured)) return std::move(*broken);
  try {
    CapturedGraph graph = recorder.finish();
    graph.graph.name = name_of_callable(callable);
    return new CacheEntry(state, std::move(std::get<Segment>(captured)), std::move(graph));
  } catch (const GraphBreak& stop) {
    CaptureBreak broken;
    broken.reason = stop.reason();
    broken.hint = stop.hint();
    return broken;
  } catch (const std::exception& failure) {
    PyErr_Clear();
    CaptureBreak broken;
    broken.reason = fmt::format("an internal failure: {}", failure.what());
    return broken;
  }
}

}  // namespace

Dynamic dynamic_of(const Settings& settings) {
  if (settings.callable) return Dynamic::never;
  if (!settings.dynamic) return Dynamic::when_varying;
  return *settings.dynamic ? Dynamic::always : Dynamic::never;
}

std::variant<CacheEntry*, CaptureBreak> capture_call(PyObject* callable, const CallArguments& call, const TorchState& state, Dynamic dynamic,
                                                     NumberHistory& history) {
  constexpr int kMostRounds = 24;
  NumberFacts facts;
  bool settled = false;
  for (int round = 0;; ++round) {
    if (round == kMostRounds) facts.fix_all();
    Outlook outlook;
    Captured captured = capture_once(callable, call, state, {dynamic, history, facts}, outlook);
    const auto* broken = std::get_if<CaptureBreak>(&captured);
    bool again = outlook.learned && round < kMostRounds;
    if (!again && broken && outlook.has_symbols) again = facts.fix_all();  // constants may do where symbols do not
    if (!again && broken && broken->unsettled) again = !std::exchange(settled, true);
    if (!again) return captured;
    if (!broken) std::get<CacheEntry*>(captured)->release();
  }
}

std::string break_message(const CaptureBreak& broken, const std::string& name) {
  std::string text = fmt::format("{} cannot be captured as one graph: {}", name, broken.reason);
  if (!broken.file.empty()) text += fmt::format("\n  File \"{}\", line {}, in {}\n    {}", broken.file, broken.line, broken.function, broken.code);
  if (!broken.hint.empty()) text += fmt::format("\n  Hint: {}", broken.hint);
  return text;
}

}  // namespace tenon::python
