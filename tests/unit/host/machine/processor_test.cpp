#include "host/machine/processor.h"

#include "catch.h"

using namespace tenon::host;

TEST_CASE("the processor is told by name, with the extensions that code generation goes by") {
  const Processor found = processor();
  CHECK_FALSE(found.name.empty());
#if defined(__x86_64__)
  CHECK_THAT(found.features, Catch::Contains("sse4_2"));
  CHECK_THAT(found.features, !Catch::Contains("smep") && !Catch::Contains("fpu"));
#endif
  CHECK_THAT(operating_system(), Catch::StartsWith("Linux ") && Catch::Contains("glibc 2."));
}
