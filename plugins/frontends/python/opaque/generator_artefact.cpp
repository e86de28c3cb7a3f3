#include "python/opaque/generator_artefact.h"

#include <cstring>

#include "python/objects/imported.h"
#include "python/opaque/python_artefact.h"

namespace tenon::python {
namespace {

constexpr std::string_view kDraw = "tenon.philox_draw.default";
constexpr std::int64_t kWords = 4;  // of 32 bits, that one step of a generator's offset stands for

/// The generator's methods, named once.
struct Methods {
  Ref seed = checked(PyUnicode_InternFromString("initial_seed")), offset = checked(PyUnicode_InternFromString("get_offset")), move = checked(PyUnicode_InternFromString("set_offset"));

  static const Methods& known() {
    static const Methods& all = *new Methods;
    return all;
  }
};

std::int64_t integer(PyObject* object) {
  const long long number = PyLong_AsLongLong(object);
  if (number == -1 && PyErr_Occurred()) throw PythonError();
  return number;
}

/// Gives the seed, and the offset in blocks of words: package/tenon/_philox.py says by how much each draw moves it.
class GeneratorArtefact final : public PythonArtefact {
 public:
  GeneratorArtefact(const GraphView& graph, NodeView node, const OpaqueCall& call) {
    const GilHeld gil;
    PyObject* increment_varies[] = {Py_None};
    const Ref arguments = call.arguments(increment_varies);
    generator_ = checked(PyObject_CallMethod(checked(imported("tenon._philox")).get(), "generator_of", "O", PyTuple_GET_ITEM(arguments.get(), 1)));
    for (ValueView operand : node.operands())
      if (operand.type().is_tensor()) increment_input_ = operand.index();
    if (increment_input_ == TENON_NO_NODE) increment_ = integer(PyTuple_GET_ITEM(arguments.get(), 0));
    for (ValueView result : node.results()) {
      if (!result.type().is_tensor()) continue;
      std::uint32_t& at = result.id() == (*node.results().begin()).id() ? seed_output_ : offset_output_;
      for (std::uint32_t i = 0; i < graph.outputs().size(); ++i)
        if (graph.outputs()[i].value.id() == result.id()) at = i;
    }
  }
  ~GeneratorArtefact() override { drop(generator_); }

 private:
  std::string name() const override { return std::string(kDraw); }

  void run(const TenonExecuteArgs& args) override {
    const Methods& methods = Methods::known();
    const Ref seed = checked(PyObject_CallMethodNoArgs(generator_.get(), methods.seed.get()));
    const std::int64_t offset = integer(checked(PyObject_CallMethodNoArgs(generator_.get(), methods.offset.get())).get());
    std::int64_t increment = increment_;
    if (increment_input_ != TENON_NO_NODE) std::memcpy(&increment, args.inputs[increment_input_], sizeof increment);
    checked(PyObject_CallMethodOneArg(generator_.get(), methods.move.get(), checked(PyLong_FromLongLong(offset + increment)).get()));
    put(args, seed_output_, PyLong_AsUnsignedLongLongMask(seed.get()));
    put(args, offset_output_, static_cast<std::uint64_t>(offset / kWords));
  }

  static void put(const TenonExecuteArgs& args, std::uint32_t output, std::uint64_t number) {
    if (output != TENON_NO_NODE) std::memcpy(args.outputs[output], &number, sizeof number);
  }

  Ref generator_;
  std::int64_t increment_ = 0;
  std::uint32_t increment_input_ = TENON_NO_NODE, seed_output_ = TENON_NO_NODE, offset_output_ = TENON_NO_NODE;
};

}  // namespace

std::unique_ptr<Artefact> make_generator_artefact(const GraphView& graph, NodeView node, std::shared_ptr<OpaqueCall> call) {
  if (call->target() != kDraw) return nullptr;
  try {
    return std::make_unique<GeneratorArtefact>(graph, node, *call);
  } catch (const PythonError&) {
    const GilHeld gil;
    throw Failure(TENON_PLUGIN_FAILED, fmt::format("{} raised {}", kDraw, type_and_text(compat::take_exception().get())));
  }
}

}  // namespace tenon::python
