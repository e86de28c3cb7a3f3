#include "core/ops/notation/family.h"

#include <iterator>

#include "core/ops/foreign/foreign_call.h"

namespace tenon::ops {
namespace {

constexpr std::string_view kUfuncOptions = "out=None, *, where=True, casting='same_kind', order='K', dtype=None, subok=True)";

std::vector<Alias> numpy_names(std::initializer_list<std::string_view> names, std::string_view operands, Adapt adapt) {
  std::vector<Alias> aliases;
  for (std::string_view n : names)
    aliases.push_back({"numpy." + std::string(n), std::string(operands) + std::string(kUfuncOptions), adapt});
  return aliases;
}

}  // namespace

Values unchanged(ForeignArguments& a) { return {a.value("self")}; }

std::size_t dim_of(const OpQuery& query) {
  return static_cast<std::size_t>(infer::wrap_dim(query.constant_integer("dim"), query.type(0).rank()));
}

std::vector<Alias> torch_names(std::string_view name, std::string signature, Adapt adapt) {
  const std::string n(name);
  return {{"torch." + n, signature, adapt}, {"torch.Tensor." + n, signature, adapt}};
}

std::vector<Alias> names(std::initializer_list<std::string_view> names, std::string signature, Adapt adapt) {
  std::vector<Alias> aliases;
  for (std::string_view n : names) aliases.push_back({std::string(n), signature, adapt});
  return aliases;
}

std::vector<Alias> ufunc1(std::initializer_list<std::string_view> names, Adapt adapt) {
  return numpy_names(names, "(x -> self, ", std::move(adapt));
}

std::vector<Alias> ufunc2(std::initializer_list<std::string_view> names, Adapt adapt) {
  return numpy_names(names, "(x1 -> self, x2 -> other, ", std::move(adapt));
}

std::vector<Alias> operator+(std::vector<Alias> a, std::vector<Alias> b) {
  a.insert(a.end(), std::make_move_iterator(b.begin()), std::make_move_iterator(b.end()));
  return a;
}

}  // namespace tenon::ops
