// `_tenon.TextStandIn`: stands for a str, or a float, that is made of numbers and texts which are known only at the call: it is made when the
// graph has run.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "python/guards/source.h"
#include "python/objects/ref.h"

namespace tenon::python {

/// A call that gives a str or a float, or what is in one (a torch.Size): of its arguments, also those in tuples, some are stand-ins for numbers, or for
/// such texts. Or a str that was there before the call, and varies.
struct LateText {
  Ref function = {}, arguments = {};
  SourceId source = {};
  std::string name = {};  // the words of the source
  PyTypeObject* type = &PyUnicode_Type;  // str or float
};

/// Texts are made of it: "a" + text, f"{text}". Any other use needs the text itself: it ends the graph there, or makes the numbers constants
/// in another capture.
Ref make_late_text(LateText text);

bool is_late_text(PyObject* object);
const LateText& late_text_of(PyObject* text);
/// The stand-ins that it is made of: numbers, and texts that were there before the call.
std::vector<PyObject*> inputs_of_text(PyObject* text);
/// The str itself, with the given objects in the places of those. Throws PythonError.
Ref text_with(const LateText& text, const std::vector<std::pair<PyObject*, PyObject*>>& inputs);

PyTypeObject* late_text_type();

}  // namespace tenon::python
