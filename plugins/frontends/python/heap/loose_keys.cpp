// Keys of dicts that vary: ints that name what the program has made (a counter's), of which it matters only which of them are one. In a dict of
// this capture the stand-in is the key; an older one is asked at each call whether it holds the int. What such a key hashes to decides nothing, as
// it is compared with every other number that is looked up.
#include "python/heap/finalizers.h"
#include "python/heap/heap.h"
#include "python/objects/dict_access.h"

namespace tenon::python {
namespace {

constexpr Py_ssize_t kMostByPosition = 16;

bool is_plain_number(PyObject* key) { return PyLong_CheckExact(key) || PyBool_Check(key) || PyFloat_CheckExact(key); }

std::vector<Ref> keys_of(PyObject* dict) {
  std::vector<Ref> keys;
  Py_ssize_t position = 0;
  PyObject *key, *value;
  while (PyDict_Next(dict, &position, &key, &value)) keys.push_back(Ref::borrow(key));
  return keys;
}

std::vector<Ref> written_keys(const Change* change) {
  if (change == nullptr || !change->written) return {};
  std::vector<Ref> keys;
  Ref list = checked(PySequence_List(change->written.get()));
  for (Py_ssize_t at = 0; at < PyList_GET_SIZE(list.get()); ++at) keys.push_back(Ref::borrow(PyList_GET_ITEM(list.get(), at)));
  return keys;
}

bool equal(PyObject* left, PyObject* right) { return left == right || checked(PyObject_RichCompare(left, right, Py_EQ)).is(Py_True); }

}  // namespace

bool Heap::is_varying_int(PyObject* object) { return is_number(object) && recorder_.apparent_type(object) == &PyLong_Type; }

Ref Heap::loose_key(PyObject* dict, PyObject* key) {
  if (!loose_dicts_.contains(dict) || !(is_number(key) || is_plain_number(key))) return {};
  std::vector<Ref> varying = keys_of(dict), deleted = written_keys(source_of(dict) ? changes_.find(dict) : nullptr);
  varying.insert(varying.end(), deleted.begin(), deleted.end());
  for (const Ref& held : varying)
    if (is_number(held.get()) && equal(held.get(), key)) return held;
  return {};
}

/// The guard looks the number up at each call; what the program has put into the dict, or taken from it, is compared with it.
std::optional<Heap::NumberedItem> Heap::item_of_older(PyObject* dict, PyObject* number) {
  if (!is_varying_int(number)) return std::nullopt;
  const SourceId source = source_of(dict);
  if (!source || guards_.are_read_again()) return std::nullopt;
  auto place = recorder_.place_of(number);
  const Change* change = changes_.find(dict);
  if (!place || (change && change->all_written)) return std::nullopt;
  for (const Ref& key : written_keys(change))
    if ((is_plain_number(key.get()) || is_number(key.get())) && equal(number, key.get())) return std::nullopt;
  Ref now = checked(PyLong_FromLongLong(place->now));
  PyObject* value = PyDict_GetItemWithError(change ? change->original.get() : dict, now.get());
  if (value == nullptr && PyErr_Occurred()) throw_python_error();
  guards_.add_number_in_keys(source, place->chosen, value != nullptr);
  return NumberedItem{Ref::borrow(value), sources().chosen_item(source, std::move(place->chosen)), std::move(now)};
}

bool Heap::is_no_key(PyObject* keys, PyObject* number) {
  constexpr Py_ssize_t kMostKeys = 64;
  const SourceId source = source_of(keys);
  const bool of_dict = PyDict_Check(keys);
  const bool varies = is_number(number) && recorder_.apparent_type(number) != &PyUnicode_Type;
  if (varies && of_dict && loose_key(keys, number)) return false;
  if (of_dict)
    if (const auto found = item_of_older(keys, number)) return !found->value;
  if (!varies || (source && changes_.find(keys)) || (of_dict ? PyDict_GET_SIZE(keys) : PySet_GET_SIZE(keys)) > kMostKeys) return false;
  Ref all = checked(of_dict ? PyDict_Keys(keys) : PySequence_List(keys));
  std::vector<PyObject*> numbers;
  for (Py_ssize_t at = 0; at < PyList_GET_SIZE(all.get()); ++at) {
    PyObject* key = PyList_GET_ITEM(all.get(), at);
    if (PyLong_CheckExact(key) || PyBool_Check(key) || PyFloat_CheckExact(key)) numbers.push_back(key);
    else if (is_number(key) && has_loose_keys(keys)) continue;  // known to be another one
    else if (key != Py_None && !PyUnicode_CheckExact(key)) return false;
  }
  if (source) of_dict ? guard_keys(source, keys) : guard_items_of_set(source, keys);
  return std::ranges::none_of(numbers, [&](PyObject* key) { return checked(PyObject_RichCompare(number, key, Py_EQ)).is(Py_True); });
}

Heap::StoredKey Heap::key_to_store(PyObject* dict, PyObject* given, bool stores) {
  if (Ref held = loose_key(dict, given)) return {held, held};
  if (is_stand_in(given) || !is_varying_int(given)) {
    const Ref key = is_stand_in(given) ? key_held_by(*this, dict, given) : plain_key(given);
    return {key, key};
  }
  if (stores ? is_no_key(dict, given) : false) {
    loose_dicts_.insert(dict);
    return {Ref::borrow(given), Ref::borrow(given)};
  }
  if (!stores)
    if (auto found = item_of_older(dict, given); found && found->value) {
      loose_dicts_.insert(dict);
      return {Ref::borrow(given), found->now};
    }
  const Ref key = plain_key(given);
  return {key, key};
}

void Heap::store_key(PyObject* dict, PyObject* given, PyObject* value) {
  const StoredKey stored = key_to_store(dict, given, value != nullptr);
  PyObject *key = stored.key.get(), *held = stored.held.get();
  const HashesLoosely loosely(recorder_);
  if (!is_older(dict, "a change")) {
    set_past_override(dict, held, value);
    return;
  }
  require_quiet_end(PyDict_GetItemWithError(dict, held));
  Change& change = before_change(dict, false);
  set_past_override(dict, held, value);
  checked(PySet_Add(change.written.get(), key));
  if (value) journal_.add(WriteKind::dict_set, {Ref::borrow(dict), Ref::borrow(key), Ref::borrow(value)});
  else journal_.add(WriteKind::dict_delete, {Ref::borrow(dict), Ref::borrow(key)});
}

Ref Heap::items_of(PyObject* dict) {
  const HashesLoosely loosely(recorder_);
  return items_past_override(dict);
}

void Heap::copy_with_loose_keys(PyObject* dict, PyObject* copy) {
  expose_to_walk(dict);
  Ref items = items_of(dict);
  const HashesLoosely loosely(recorder_);
  for (Py_ssize_t at = 0; at < PyList_GET_SIZE(items.get()); ++at) {
    PyObject* item = PyList_GET_ITEM(items.get(), at);
    set_past_override(copy, PyTuple_GET_ITEM(item, 0), PyTuple_GET_ITEM(item, 1));
  }
  loose_dicts_.insert(copy);
}

void Heap::settle_keys(PyObject* dict) {
  if (loose_dicts_.erase(dict) == 0) return;
  std::vector<Ref> varying = keys_of(dict), deleted = written_keys(source_of(dict) ? changes_.find(dict) : nullptr);
  varying.insert(varying.end(), deleted.begin(), deleted.end());
  for (const Ref& key : varying) plain_key(key.get());
}

bool Heap::expose_values(PyObject* dict) {
  const SourceId source = source_of(dict);
  if (!source || changes_.find(dict) || PyDict_GET_SIZE(dict) > kMostByPosition || !(types_.of(dict).exact || keeps_own_order(dict))) return false;
  const std::vector<Ref> keys = keys_of(dict);
  if (keys.empty() || !std::ranges::all_of(keys, [](const Ref& key) { return PyLong_CheckExact(key.get()); })) return false;
  const Exposing exposing(*this);
  guards_.add_length(source, PyDict_GET_SIZE(dict));
  Ref items = items_of(dict);
  for (Py_ssize_t at = 0; at < PyList_GET_SIZE(items.get()); ++at) {
    PyObject* value = PyTuple_GET_ITEM(PyList_GET_ITEM(items.get(), at), 1);
    enter(sources().item(SourceKind::dict_value, source, at), value);
    expose(value, 1);
  }
  return true;
}

}  // namespace tenon::python
