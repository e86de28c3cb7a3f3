#include "core/guards/check.h"

#include <limits>

#include "catch.h"

using namespace tenon::guards;

namespace {

struct Words {
  SourceTable sources;
  SourceId self = sources.root(SourceKind::argument, 0);
  SourceId x = sources.root(SourceKind::argument, "x");
  SourceId conv = sources.part(SourceKind::item, sources.part(SourceKind::attribute, self, "layers"), "conv");

  std::string told(CheckKind kind, SourceId source, Fact expected, Fact found) {
    return explain(sources, {kind, source, std::move(expected), {}, {}}, found);
  }
};

}  // namespace

TEST_CASE("sources are told as expressions, each once") {
  Words w;
  const SourceId weight = w.sources.part(SourceKind::attribute, w.conv, "weight");
  CHECK(w.sources.describe(weight) == "arg[0].layers[\"conv\"].weight");
  w.sources.name_arguments({"self"});
  CHECK(w.sources.describe(weight) == "self.layers[\"conv\"].weight");
  CHECK(w.sources.part(SourceKind::attribute, w.conv, "weight") == weight);
  CHECK(w.sources.describe(w.sources.part(SourceKind::length, weight)) == "len(self.layers[\"conv\"].weight)");
  CHECK(w.sources.describe(w.sources.part(SourceKind::default_value, w.x, 1)) == "x.__defaults__[1]");
  CHECK(w.sources.describe(w.sources.part(SourceKind::item, w.x, ObjectKey{1, "<key>"})) == "x[<key>]");
  CHECK(w.sources.root_of(weight) == w.self);
  CHECK(w.sources.is_within(weight, w.conv));
  CHECK_FALSE(w.sources.is_within(weight, w.x));
}

TEST_CASE("True, 1 and 1.0 are different facts, and floats are their bits") {
  CHECK_FALSE(Fact(true) == Fact(1));
  CHECK_FALSE(Fact(1) == Fact(1.0));
  CHECK_FALSE(Fact(0.0) == Fact(-0.0));
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(Fact(nan) == Fact(nan));
  CHECK(Fact(FactList{nan, "a"}) == Fact(FactList{nan, "a"}));
  CHECK(Fact(ObjectKey{3, "a"}) == Fact(ObjectKey{3, "b"}));
}

TEST_CASE("what failed is told with the old value and the new") {
  Words w;
  CHECK(w.told(CheckKind::constant, w.x, 3, 5) == "x was 3, is 5");
  CHECK(w.told(CheckKind::constant, w.x, "same", "valid") == "x was \"same\", is \"valid\"");
  CHECK(w.told(CheckKind::constant, w.x, 1, true) == "x was 1, is True");
  CHECK(w.told(CheckKind::type, w.x, ObjectKey{1, "<int>"}, ObjectKey{2, "<float>"}) == "type(x) was <int>, is <float>");
  CHECK(w.told(CheckKind::shape, w.x, FactList{{}, 3, 4}, FactList{9, 3, 5}) == "x.shape[2] was 4, is 5");
  CHECK(w.told(CheckKind::shape, w.x, FactList{{}, 4}, FactList{4}) == "x.shape was [*, 4], is [4]");
  CHECK(w.told(CheckKind::dtype, w.x, "f32", "f64") == "x.dtype was f32, is f64");
  CHECK(w.told(CheckKind::lacks_key, w.x, "forward", true) == "\"forward\" was not in x, is now");
  CHECK(w.told(CheckKind::requires_grad, w.x, false, true) == "x.requires_grad was False, is True");
  CHECK(w.told(CheckKind::length, w.conv, 2, 3) == "len(arg[0].layers[\"conv\"]) was 2, is 3");
}
