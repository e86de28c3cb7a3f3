#include "python/call/graph_function.h"

#include "python/compat/object_layout.h"
#include "python/compat/waiting_signals.h"
#include "python/objects/graph_break.h"

namespace tenon::python {

void GraphFunction::compile() {
  if (is_compiled()) return;
  std::optional<Program> program = compile_natively(*captured_, settings_);
  if (!program) {
    if (Ref interrupt = compat::take_interrupt()) compat::set_exception(std::move(interrupt));
    throw PythonError();
  }
  if (is_compiled()) return;  // another thread was faster
  program_ = std::make_unique<const Program>(std::move(*program));
  ready_.store(program_.get(), std::memory_order_release);
}

bool GraphFunction::run(void** data, std::span<const std::int64_t> symbols) const {
  TenonRunArgs args{};
  args.struct_size = sizeof args;
  args.inputs = data;
  args.outputs = data + input_count();
  if (!symbols.empty()) args.symbols = symbols.data();
  return tenon_program_run(ready_.load(std::memory_order_acquire)->native(), &args) == TENON_OK;
}

}  // namespace tenon::python
