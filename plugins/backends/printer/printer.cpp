// A backend that looks and leaves the work to others.
#include "core/ir/printer.h"

#include <cstdio>
#include <fstream>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>

#include "core/ir/buffer.h"
#include "table.h"
#include "tenon/backend.h"

namespace tenon::printer {

class Printer : public Backend {
 public:
  static constexpr std::uint32_t kFlags = TENON_DYNAMIC_SHAPES | TENON_STRIDED_INPUTS | TENON_ASK_ONCE;

  Printer(HostServices, const std::string& options) {
    const nlohmann::json given = nlohmann::json::parse(options);
    code_ = given.value("code", true);
    table_ = given.value("table", true);
    file_ = given.value("file", "");
  }

  void claim(const GraphView& view, Claims&) override {
    const ir::Graph graph = ir::read_buffer(view.bytes()).value();
    std::string text;
    if (code_) text += ir::print_graph(graph);
    if (table_) text += table_of(graph);
    write(text);
  }

  std::unique_ptr<Artefact> compile(const GraphView&, std::span<const DLTensor* const>, const std::string&) override {
    throw Failure(TENON_UNSUPPORTED, "the printer compiles nothing");
  }

 private:
  void write(const std::string& text) const {
    if (file_.empty()) {
      std::fwrite(text.data(), 1, text.size(), stdout);
      std::fflush(stdout);
      return;
    }
    std::ofstream stream(file_, std::ios::app);
    stream << text;
    if (!stream) throw Failure(TENON_INVALID_ARGUMENT, "cannot write to " + file_);
  }

  bool code_ = true, table_ = true;
  std::string file_;
};

}  // namespace tenon::printer

TENON_BACKEND(tenon::printer::Printer, "printer", "0.1", "Prints the graph and leaves it to the next backend")
