#include "python/segments/segment.h"

namespace tenon::python {

Built complete(const Segment& segment, PyObject* const* values, PyObject* const* outputs) {
  if (segment.journal.empty() && !segment.stop) return {segment.objects.build_one(segment.result, values, outputs), {}};
  std::vector<Ref> built = segment.objects.build(values, outputs);
  segment.journal.run(built);
  segment.objects.place_iterators(built);
  if (segment.stop) return {{}, std::move(built)};
  return {std::move(built[segment.result]), {}};
}

}  // namespace tenon::python
