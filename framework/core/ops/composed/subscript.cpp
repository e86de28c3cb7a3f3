// x[…] and x[…] = v of both libraries, made of views, `index`, `index_put` and the scatters of views. No op is declared here.
#include <algorithm>
#include <ranges>

#include "core/ops/notation/index_rules.h"
#include "core/ops/notation/masked_write.h"
#include "core/ops/size_questions.h"

namespace tenon::ops {
namespace {

using ir::Dim;
using ir::Shape;

/// The index as a list of entries; an importer hands a tuple as a list, and a list inside the subscript as a list in that list.
ForeignList entries_of(const ForeignArgument& index) {
  const ForeignList* list = index.as<ForeignList>();
  return list ? *list : ForeignList{index};
}

/// How a view was made from its parent, so that a write to it can be carried back.
struct Step {
  enum class Kind : std::uint8_t { select, slice, reshape } kind;
  ir::ValueId parent;
  std::size_t dim = 0;
  Dim index;           // select
  SliceBounds bounds;  // slice
};

/// A subscript taken apart: the view that its basic entries give, and index tensors for some of the view's dimensions.
class Subscript {
 public:
  Subscript(ForeignArguments& a, ir::ValueId x, const ForeignArgument& index) : a_(a), view_(x) {
    ForeignList entries = entries_of(index);
    for (ForeignArgument& e : entries) prepare(e);
    expand_ellipsis(entries);
    advanced_ = std::ranges::any_of(entries, is_tensor);
    for (const ForeignArgument& e : entries) apply(e);
  }

  ir::ValueId view() const { return view_; }
  bool advanced() const { return advanced_; }
  const std::vector<ir::ValueId>& indices() const { return indices_; }
  const std::vector<Dim>& dims() const { return dims_; }
  /// The shape of what is read or written.
  Shape shape() const {
    if (!advanced_) return a_.type(view_).shape;
    const Values operands = indexed();
    const ir::Attributes where{{"dims", dims_}};
    return AdvancedIndex(OpQuery(a_.graph(), operands, where), 1).result;
  }

  ir::ValueId read() {
    if (!advanced_) return view_;
    return a_.builder().one("index", indexed(), {{"dims", dims_}});
  }

  /// The whole tensor after `value`, of the view's shape, has replaced the view.
  ir::ValueId write_back(ir::ValueId value) {
    NodeBuilder& b = a_.builder();
    for (auto step = steps_.rbegin(); step != steps_.rend(); ++step) {
      const Dim dim(static_cast<std::int64_t>(step->dim));
      switch (step->kind) {
        case Step::Kind::reshape: value = reshape_to(b, value, a_.type(step->parent).shape); break;
        case Step::Kind::select: value = b.one("select_scatter", {step->parent, value}, {{"dim", dim}, {"index", step->index}}); break;
        case Step::Kind::slice:
          if (step->bounds.backward) value = b.one("flip", {value}, {{"dims", std::vector<Dim>{dim}}});
          value = b.one("slice_scatter", {step->parent, value},
                        {{"dim", dim}, {"end", step->bounds.end}, {"start", step->bounds.start}, {"step", step->bounds.step}});
          break;
      }
    }
    return value;
  }

 private:
  /// The view, and the index tensors.
  Values indexed() const {
    Values operands{view_};
    operands.insert(operands.end(), indices_.begin(), indices_.end());
    return operands;
  }

  static bool is_tensor(const ForeignArgument& e) { return e.as<ir::ValueId>() != nullptr; }

  bool is_mask(const ForeignArgument& e) { return is_tensor(e) && is_bool(a_.type(*e.as<ir::ValueId>()).dtype); }

  /// Lists become index tensors; what is not covered is refused.
  void prepare(ForeignArgument& e) {
    if (e.as<bool>()) throw Exception(Code::unsupported, "a bool in a subscript");
    if (e.as<double>() || e.as<std::string>() || e.as<DType>())
      throw Exception(Code::invalid_argument,
                      "only integers, slices (`:`), ellipsis (`...`), None and integer or boolean tensors are valid indices");
    if (const ForeignList* list = e.as<ForeignList>()) {
      if (list->empty()) throw Exception(Code::unsupported, "an empty list in a subscript");
      Values parts;
      for (const ForeignArgument& part : *list) {
        if (!part.as<Dim>() && !part.as<bool>()) throw Exception(Code::unsupported, "a nested list in a subscript");
        parts.push_back(a_.tensor(a_.to_value(part)));
      }
      e.value = a_.one("stack", std::move(parts), {{"dim", Dim(0)}});
    }
    if (is_tensor(e)) {
      const DType t = a_.type(*e.as<ir::ValueId>()).dtype;
      TENON_USER_CHECK(is_int(t) || is_bool(t), "tensors used as indices must be integer or bool tensors, not {}", name_of(t));
      if (t == DType::u8 && !a_.numpy()) throw Exception(Code::unsupported, "a uint8 tensor as an index");
    }
  }

  std::size_t consumed(const ForeignArgument& e) {
    if (e.is_none() || e.as<ForeignEllipsis>()) return 0;
    return is_mask(e) ? a_.type(*e.as<ir::ValueId>()).rank() : 1;
  }

  void expand_ellipsis(ForeignList& entries) {
    std::size_t used = 0;
    for (const ForeignArgument& e : entries) used += consumed(e);
    const std::size_t rank = a_.type(view_).rank();
    TENON_USER_CHECK(used <= rank, "too many indices for tensor of dimension {}", rank);
    const ForeignList all(rank - used, {ForeignSlice{}});
    const auto ellipsis = std::ranges::find_if(entries, [](const ForeignArgument& e) { return e.as<ForeignEllipsis>() != nullptr; });
    if (ellipsis == entries.end()) {
      entries.insert(entries.end(), all.begin(), all.end());
      return;
    }
    const auto at = entries.erase(ellipsis);
    entries.insert(at, all.begin(), all.end());
    TENON_USER_CHECK(std::ranges::none_of(entries, [](const ForeignArgument& e) { return e.as<ForeignEllipsis>() != nullptr; }),
                     "an index can only have a single ellipsis ('...')");
  }

  void apply(const ForeignArgument& e) {
    NodeBuilder& b = a_.builder();
    const Shape shape = a_.type(view_).shape;
    if (e.is_none()) {
      Shape wider = shape;
      wider.insert(wider.begin() + static_cast<std::ptrdiff_t>(at_++), Dim(1));
      steps_.push_back({Step::Kind::reshape, view_, 0, {}, {}});
      view_ = b.one("reshape", {view_}, {{"shape", wider}});
    } else if (const ForeignSlice* given = e.as<ForeignSlice>()) {
      const ir::ValueId parent = view_;
      SliceBounds bounds = slice_bounds(b.graph(), shape[at_], *given);
      ForeignSlice slice = *given;
      if (a_.numpy() && ask::is_zero(slice_extent(bounds))) {  // NumPy's empty parts begin where the array does
        slice = {Dim(0), Dim(0), {}};
        bounds = slice_bounds(b.graph(), shape[at_], slice);
      }
      view_ = slice_of(b, view_, at_, slice);
      if (!(view_ == parent)) steps_.push_back({Step::Kind::slice, parent, at_, {}, bounds});
      ++at_;
    } else if (const Dim* index = e.as<Dim>()) {
      apply_number(*index, shape);
    } else {
      apply_tensor(e);
    }
  }

  /// A number selects; beside index tensors NumPy counts it among them, which decides where their dimensions go.
  void apply_number(const Dim& index, const Shape& shape) {
    TENON_USER_CHECK(!index.is_constant() || !shape[at_].is_constant() ||
                         (index.constant() >= -shape[at_].constant() && index.constant() < shape[at_].constant()),
                     "index {} is out of bounds for dimension {} with size {}", infer::text(a_.graph(), index), at_,
                     infer::text(a_.graph(), shape[at_]));
    if (a_.numpy() && advanced_) {
      add_index(a_.builder().literal(index));
      return;
    }
    steps_.push_back({Step::Kind::select, view_, at_, index, {}});
    view_ = select_of(a_.builder(), view_, at_, index);
  }

  void apply_tensor(const ForeignArgument& e) {
    const ir::ValueId index = *e.as<ir::ValueId>();
    if (!is_mask(e)) {
      add_index(index);
      return;
    }
    const std::size_t rank = a_.type(index).rank();
    if (rank == 0) throw Exception(Code::unsupported, "a 0-d mask");
    for (std::size_t d = 0; d < rank; ++d)
      infer::require_equal(a_.graph(), a_.type(index).shape[d], a_.type(view_).shape[at_ + d],
                           fmt::format("sizes of the mask and of the indexed tensor at dimension {}", d));
    const ir::ValueId found = places_of(index);
    if (rank > 1) {
      steps_.push_back({Step::Kind::reshape, view_, 0, {}, {}});
      view_ = merge_dimensions(view_, at_, rank);
    }
    add_index(select_of(a_.builder(), found, 1, Dim(0)));
  }

  /// The places of the mask's true elements among all of it. What was found before is found again: then what is read at two of its uses has
  /// one size.
  ir::ValueId places_of(ir::ValueId mask) {
    const ir::Graph& graph = a_.graph();
    for (const ir::NodeId id : graph.nodes() | std::views::reverse) {
      const ir::Node& node = graph.node(id);
      if (node.op != "nonzero" || a_.type(node.operands[0]).rank() != 1) continue;
      const ir::Value& vector = graph.value(node.operands[0]);
      const bool merged = vector.kind == ir::ValueKind::result && graph.node(vector.node).op == "reshape" && graph.node(vector.node).operands[0] == mask;
      if (merged || node.operands[0] == mask) return node.results[0];
    }
    return a_.one("nonzero", {merge_dimensions(mask, 0, a_.type(mask).rank())});
  }

  /// The value with `count` of its dimensions as one: a place in it is one number.
  ir::ValueId merge_dimensions(ir::ValueId value, std::size_t first, std::size_t count) {
    Shape shape = a_.type(value).shape;
    Dim merged(1);
    for (std::size_t d = first; d < first + count; ++d) merged = merged * shape[d];
    const auto begin = shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(first), shape.begin() + static_cast<std::ptrdiff_t>(first + count));
    shape.insert(begin, merged);
    return reshape_to(a_.builder(), value, shape);
  }

  void add_index(ir::ValueId index) {
    indices_.push_back(index);
    dims_.emplace_back(static_cast<std::int64_t>(at_++));
  }

  ForeignArguments& a_;
  ir::ValueId view_;
  std::size_t at_ = 0;  // the dimension of the view that the next entry speaks of
  bool advanced_ = false;
  std::vector<ir::ValueId> indices_;
  std::vector<Dim> dims_;
  std::vector<Step> steps_;
};

Values get_item(ForeignArguments& a) {
  Subscript subscript(a, a.value("self"), a["index"]);
  return {subscript.read()};
}

/// aten.index: tensors alone, a number as one without dimensions, and None for a dimension that stays.
Values at_tensors(ForeignArguments& a) {
  ForeignList entries = entries_of(a["index"]);
  for (ForeignArgument& e : entries) {
    if (e.is_none()) e.value = ForeignSlice{};
    else if (!e.as<ir::ValueId>()) throw Exception(Code::unsupported, "an index that is no tensor");
  }
  return {Subscript(a, a.value("self"), ForeignArgument{std::move(entries)}).read()};
}

/// The value in self's dtype, where self is; a number becomes a 0-d tensor.
ir::ValueId written_value(ForeignArguments& a, const ir::Type& self) {
  const ForeignArgument& given = a["value"];
  if (given.as<ForeignList>()) throw Exception(Code::unsupported, "assigning a list");
  return a.builder().to_device(a.tensor(a.value("value"), self.dtype), self.device);
}

/// Broadcasts a value to what is written; leading dimensions of size 1 that it has in excess go away.
ir::ValueId fitted(ForeignArguments& a, ir::ValueId value, const Shape& shape) {
  Shape own = a.type(value).shape;
  while (own.size() > shape.size() && own[0] == Dim(1)) own.erase(own.begin());
  value = reshape_to(a.builder(), value, own);
  TENON_USER_CHECK(infer::broadcast(a.graph(), shape, own) == shape,
                   "shape mismatch: value tensor of shape {} cannot be broadcast to indexing result of shape {}",
                   infer::text(a.graph(), own), infer::text(a.graph(), shape));
  return expand_to(a.builder(), value, shape);
}

/// How many dimensions of the view the entries before `mask` make.
std::size_t dims_before(ForeignArguments& a, const ForeignList& entries, std::size_t mask, std::size_t rank_of_mask) {
  std::size_t used = rank_of_mask, made = 0;
  for (const ForeignArgument& e : entries) used += e.as<ForeignSlice>() || e.as<Dim>() ? 1 : 0;
  const std::size_t rank = a.type(a.value("self")).rank();
  for (std::size_t i = 0; i < mask; ++i)
    made += entries[i].as<ForeignEllipsis>() ? rank - std::min(used, rank) : entries[i].as<Dim>() ? 0 : 1;
  return made;
}

/// x[…, mask, …] = v with one mask among slices, without looking for its places.
std::optional<ir::ValueId> write_masked(ForeignArguments& a, ir::ValueId self, ir::ValueId value) {
  ForeignList entries = entries_of(a["index"]);
  std::optional<std::size_t> place;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const bool number = entries[i].as<Dim>() != nullptr;
    if (entries[i].is_none() || entries[i].as<ForeignSlice>() || entries[i].as<ForeignEllipsis>() || (number && !a.numpy())) continue;
    if (place || !entries[i].as<ir::ValueId>()) return std::nullopt;
    place = i;
  }
  if (!place) return std::nullopt;
  const ir::ValueId mask = *entries[*place].as<ir::ValueId>();
  if (!is_bool(a.type(mask).dtype)) return std::nullopt;
  const std::size_t rank = a.type(mask).rank(), at = dims_before(a, entries, *place, rank);
  const auto where = entries.erase(entries.begin() + static_cast<std::ptrdiff_t>(*place));
  entries.insert(where, rank, ForeignArgument{ForeignSlice{}});
  Subscript part(a, self, ForeignArgument{std::move(entries)});
  const auto written = masked_write(a, part.view(), mask, at, value, false);
  return written ? std::optional(part.write_back(*written)) : std::nullopt;
}

/// Under indices torch writes values of the tensor's own dtype and device alone, but for one value under a mask, or from the host, and raises
/// for others.
void require_own_kind(ForeignArguments& a, const ir::Type& self) {
  if (a.numpy() || !a.is_tensor("value")) return;
  const ir::Type value = a.type(a.value("value"));
  const ForeignList entries = entries_of(a["index"]);
  const auto is_index = [&](const ForeignArgument& e) { return e.as<ir::ValueId>() || e.as<ForeignList>(); };
  const auto is_mask = [&](const ForeignArgument& e) { return e.as<ir::ValueId>() && is_bool(a.type(*e.as<ir::ValueId>()).dtype); };
  const bool masked = std::ranges::all_of(entries, [&](const ForeignArgument& e) { return !is_index(e) || is_mask(e); });
  if (std::ranges::none_of(entries, is_index)) return;
  const bool one = value.element_count() == Dim(1);
  if (value.device != self.device && !(one && value.device.is_host()))
    throw Exception(Code::unsupported, fmt::format("writing what is on {} under indices of a tensor on {}", ir::device_text(value.device), ir::device_text(self.device)));
  if (value.dtype != self.dtype && !(masked && one))
    throw Exception(Code::unsupported, fmt::format("writing {} under indices of a tensor of {}", name_of(value.dtype), name_of(self.dtype)));
}

Values set_item(ForeignArguments& a) {
  const ir::ValueId self = a.value("self");
  require_own_kind(a, a.type(self));
  const ir::ValueId value = written_value(a, a.type(self));
  if (const auto masked = write_masked(a, self, value)) return {*masked};
  Subscript subscript(a, self, a["index"]);
  const ForeignList entries = entries_of(a["index"]);
  const bool item = subscript.shape().empty() && std::ranges::none_of(entries, [](const ForeignArgument& e) { return e.as<ForeignEllipsis>() != nullptr; });
  if (a.numpy() && item && a.type(value).rank() > 0) throw Exception(Code::unsupported, "an array as an item, at which NumPy raises");
  if (!subscript.advanced()) return {subscript.write_back(fitted(a, value, subscript.shape()))};
  Values operands{subscript.view(), value};
  const Shape shape = subscript.shape();
  Shape own = a.type(value).shape;
  while (own.size() > shape.size() && own[0] == Dim(1)) own.erase(own.begin());
  operands[1] = reshape_to(a.builder(), value, own);
  for (ir::ValueId index : subscript.indices()) operands.push_back(a.tensor(index));  // a number beside arrays
  const ir::ValueId written = a.builder().one("index_put", std::move(operands), {{"accumulate", false}, {"dims", subscript.dims()}});
  return {subscript.write_back(written)};
}

/// fill_, ndarray.fill: with one value.
Values filled(ForeignArguments& a) {
  const ir::Type self = a.type(a.value("self"));
  const ir::ValueId value = written_value(a, self);
  TENON_USER_CHECK(a.type(value).rank() == 0, "a tensor of {} dimensions as the one value to fill with", a.type(value).rank());
  return {expand_to(a.builder(), value, self.shape)};
}

/// zero_, copy_: the whole of self is written.
Adapt overwritten(std::optional<std::int64_t> with) {
  return [with](ForeignArguments& a) -> Values {
    const ir::Type self = a.type(a.value("self"));
    if (with) a.bind("value", {Dim(*with)});
    return {fitted(a, written_value(a, self), self.shape)};
  };
}

}  // namespace

std::vector<Alias> subscript_names() {
  return names({"torch.Tensor.__getitem__", "numpy.ndarray.__getitem__"}, "(self, index)", get_item) + names({"aten.index", "aten.index.Tensor"}, "(self, indices -> index)", at_tensors) +
         names({"torch.Tensor.__setitem__", "numpy.ndarray.__setitem__"}, "(self, index, value)", set_item) +
         names({"torch.Tensor.fill_", "torch.fill", "torch.fill_"}, "(self, value)", filled) +
         names({"torch.Tensor.copy_"}, "(self, src -> value, non_blocking=False)", overwritten({})) +
         names({"torch.Tensor.zero_", "torch.zero_"}, "(self)", overwritten(0)) +
         names({"numpy.ndarray.fill"}, "(self, value)", filled);
}

}  // namespace tenon::ops
