#include "tenon/profiling.h"

#include <string>
#include <vector>

#include "catch.h"
#include "host/diagnostics/profiling.h"

using namespace tenon;
using namespace tenon::host;

namespace {

std::vector<std::string> said;

constexpr TenonRangeListener kListener{sizeof(TenonRangeListener), [](const char* name, const char* place) { said.push_back(std::string(name) + " at " + place); }, [] { said.push_back("end"); }};

}  // namespace

TEST_CASE("ranges go to the driver's listener while there is one") {
  said.clear();
  const Profiling profiling(&profiling_table());
  CHECK_FALSE(profiling.takes_ranges());
  { ProfiledRange unheard("before"); }
  tenon_on_range(&kListener);
  CHECK(profiling.takes_ranges());
  {
    ProfiledRange outer("outer");
    Range inner;
    inner.begin(profiling, "inner", "net.py:12");
    Range never;
  }
  tenon_on_range(nullptr);
  CHECK_FALSE(profiling.takes_ranges());
  { ProfiledRange unheard("after"); }
  CHECK(said == std::vector<std::string>{"outer at ", "inner at net.py:12", "end", "end"});
}

TEST_CASE("a range that outlives its listener ends without one") {
  said.clear();
  tenon_on_range(&kListener);
  {
    ProfiledRange range("range");
    tenon_on_range(nullptr);
  }
  CHECK(said == std::vector<std::string>{"range at "});
}

TEST_CASE("a host without the extension has no listeners") {
  const Profiling none(static_cast<const TenonProfiling*>(nullptr));
  CHECK_FALSE(none.takes_ranges());
  CHECK_FALSE(none.takes_code());
  TenonProfiling older = profiling_table();
  older.struct_size = offsetof(TenonProfiling, tell_code);
  CHECK_FALSE(Profiling(&older).takes_ranges());
}
