#include "core/ops/catalog.h"

#include <unordered_map>

#include "core/abi/graph_buffer.h"
#include "core/ops/notation/family.h"

namespace tenon::ops {
namespace {

/// What no tensor can be.
void require_possible(const OpQuery& q, const ir::Type& type) {
  TENON_USER_CHECK(type.rank() <= TENON_MAX_RANK, "a result of {} dimensions; {} are the most", type.rank(), TENON_MAX_RANK);
  for (const ir::Dim& d : type.shape)
    TENON_USER_CHECK(!d.is_constant() || d.constant() >= 0, "a result of the shape {} has a negative dimension", infer::text(q.graph(), type.shape));
  TENON_USER_CHECK(ir::bytes_are_countable(type.shape, size_of(type.dtype)), "the bytes of a result of the shape {} cannot be counted in 63 bits", infer::text(q.graph(), type.shape));
}

/// Inference says what is wrong by throwing; callers get a Result.
void catch_errors(Op& op) {
  op.infer = [inner = std::move(op.infer)](const OpQuery& q) -> Result<infer::Types> {
    try {
      if (const std::string conflict = infer::device_conflict(q); !conflict.empty()) return Error{Code::invalid_argument, conflict};
      auto types = inner(q);
      if (types)
        for (const ir::Type& type : *types) require_possible(q, type);
      return types;
    } catch (const Exception& e) {
      return e.error();
    } catch (const std::bad_variant_access&) {
      return error(Code::invalid_argument, "an operand or attribute is of another kind");
    } catch (const std::exception& e) {
      return error(Code::invalid_argument, "no result can be inferred: {}", e.what());
    }
  };
}

struct Catalogue {
  std::vector<Op> ops;
  std::unordered_map<std::string_view, const Op*> by_name;
  std::unordered_map<std::string_view, AliasMatch> by_alias;

  Catalogue() {
    for (Family (*family)() :
         {arithmetic_ops, comparison_ops, rounding_ops, transcendental_ops, activation_ops,    choice_ops,         creation_ops,
          reduction_ops,  variance_ops,   norm_ops,     view_ops,           slicing_ops,       rearranging_ops,    joining_ops,
          padding_ops,    matrix_ops,     indexing_ops, scatter_ops,        normalisation_ops, data_dependent_ops, random_ops, scan_ops,
          convolution_ops, channels_last_ops, loss_ops, pooling_ops, folding_ops, upsampling_ops, sorting_ops, attention_ops, device_ops, opaque_ops, control_ops, complex_ops})
      for (Op& op : family()) ops.push_back(std::move(op));
    for (Op& op : ops) {
      catch_errors(op);
      TENON_CHECK(by_name.emplace(op.name, &op).second, "two ops are called {}", op.name);
      for (const Alias& alias : op.aliases) by_alias.emplace(alias.name, AliasMatch{&op, &alias});
    }
  }
};

const Catalogue& catalogue() {
  static const auto* instance = new Catalogue;  // never destroyed: plugins may look ops up while the process exits
  return *instance;
}

}  // namespace

std::span<const Op> all_ops() { return catalogue().ops; }

const Op* find_op(std::string_view name) {
  const auto& ops = catalogue().by_name;
  const auto it = ops.find(name);
  return it == ops.end() ? nullptr : it->second;
}

AliasMatch find_alias(std::string_view name) {
  const auto& aliases = catalogue().by_alias;
  if (const auto it = aliases.find(name); it != aliases.end()) return it->second;
  // torch.X_copy is the view torch.X in memory of its own; values have no memory here.
  constexpr std::string_view kLibrary = "torch.", kSuffix = "_copy";
  if (!name.starts_with(kLibrary) || !name.ends_with(kSuffix) || name == "torch._to_copy") return {};
  const std::string view(name.substr(kLibrary.size(), name.size() - kLibrary.size() - kSuffix.size()));
  for (const char* prefix : {"torch.", "torch.Tensor."})
    if (const auto it = aliases.find(prefix + view); it != aliases.end()) return it->second;
  return {};
}

}  // namespace tenon::ops
