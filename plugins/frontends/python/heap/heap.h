// The Python heap as one capture sees it: which objects are older than the call and where they were found, which were born in it,
// and what must be undone when it ends.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "python/heap/changes.h"
#include "python/heap/journal.h"
#include "python/heap/type_traits.h"

namespace tenon::python {

/// Every object is one of three: *known* (older than the call, found at a source, guarded), *born here*, or unknown. A mutable unknown
/// breaks the graph. Atoms (numbers, strings, …) have no identity and are only guarded by value.
class Heap {
 public:
  Heap(Recorder& recorder, GuardSet& guards) : recorder_(recorder), guards_(guards), types_(recorder) {}
  ~Heap() { rollback(); }

  GuardSet& guards() { return guards_; }
  SourceTable& sources() { return guards_.sources(); }
  const TypeTraits& traits(PyObject* object) { return types_.of(object); }
  const TypeTraits& traits(PyTypeObject* type) { return types_.of(type); }

  // ---- reads
  /// The program reads `object`, which it finds at `source`: guards it, and gives what the program must see (a stand-in for a tensor).
  Ref enter(SourceId source, PyObject* object);
  /// A value that was made in this capture by C code (or is a part of such a value): gives what the program must see.
  Ref adopt(Ref value);
  /// Declares an object as born here.
  const Ref& born(const Ref& object) {
    note_birth(object.get());
    return object;
  }
  /// Declares an exception, or its traceback, as raised here: it names frames that are not real, so that it must not outlive the capture. Nor must
  /// an address.
  void raised(PyObject* exception) {
    note_birth(exception);
    raised_.insert(exception);
  }
  bool was_raised(PyObject* exception) const { return raised_.count(exception) != 0; }
  /// The clock when the object, or the operation that a stand-in stands for, was made; 0 for all others.
  std::size_t born_at(PyObject* object) const {
    if (const auto found = born_.find(object); found != born_.end()) return found->second;
    const auto found = made_.find(object);
    return found == made_.end() ? 0 : found->second;
  }
  /// The clock of the capture: how many instructions of its outermost run have been started.
  std::size_t now = 0;

  /// Where the path begins on which a known object is found (held_objects.cpp), if the program has written nothing on it: what is there lives.
  SourceId unwritten_root_of(PyObject* object);
  /// Where a known object was found; none for objects that were born here, for atoms and stand-ins.
  SourceId source_of(PyObject* object) const;
  /// How many references to an older object the capture itself holds, those of the program aside.
  Py_ssize_t references_to(PyObject* object) { return (source_of(object) ? 1 : 0) + (changes_.find(object) ? 1 : 0) + journal_.references_to(object); }
  bool is_born(PyObject* object) const { return born_.count(object) != 0; }
  bool is_number(PyObject* object) { return types_.of(object).role == Recorder::Role::number; }
  bool is_stand_in(PyObject* object) { return types_.of(object).role == Recorder::Role::stand_in; }

  /// dict[key] past any override: the value as the program sees it, or empty when missing. The read is guarded.
  Ref dict_item(PyObject* dict, PyObject* key);
  /// Whether the key is there. Guarded.
  bool dict_contains(PyObject* dict, PyObject* key);
  /// list[index] or tuple[index] or deque[index], with 0 <= index < length.
  Ref sequence_item(PyObject* sequence, Py_ssize_t index);
  /// list[number] or tuple[number] where the number varies: an int, float or tensor that varies with it. Empty where the place must be known.
  Ref chosen_item(PyObject* sequence, PyObject* number);
  /// list[index], with -length <= index < length. Where the list is older than the call, its length is guarded only if the item goes by it.
  Ref list_item(PyObject* list, Py_ssize_t index);
  /// A key as containers look it up: the int itself for a symbolic one,
  /// also in the items of a tuple.
  Ref plain_key(PyObject* key);
  /// Whether a number that varies is none of the keys of a dict or set, all of which are compared with it. False where that cannot be said
  /// without the number itself.
  bool is_no_key(PyObject* keys, PyObject* number);
  /// The length of a container. Guarded.
  Py_ssize_t length(PyObject* container);
  /// The same where it may vary and is not known yet: a number that stands for it. Empty for others.
  Ref varying_length(PyObject* container);
  /// The `__dict__` of an instance, module or function, made known; null when it has none.
  PyObject* attributes_of(PyObject* object);
  /// The attribute as the type finds it along its bases, unbound; null when missing. Guarded.
  PyObject* type_attribute(PyTypeObject* type, PyObject* name);
  /// C code asks an object of the type for special methods: guards all that the type finds, and what it does not find.
  void guard_special_methods(PyTypeObject* type);
  /// An attribute of an object of the type is looked up. Guards that it does that in no way of its own.
  void guard_lookup(PyTypeObject* type);
  /// Makes the dict known that a class shows of its attributes, to be read only.
  void enter_class_dict(PyTypeObject* type);
  /// Something was decided by the order of the type's bases. Guarded.
  void guard_bases(PyTypeObject* type);
  /// A part of a function, method, cell (see SourceKind) as the program sees it. `value` may be null only for empty cells.
  Ref part(SourceKind kind, PyObject* owner, PyObject* value);
  /// The dict that a types.MappingProxyType shows; empty for what is none, and for one that shows something else or the attributes of a class.
  Ref behind_proxy(PyObject* proxy);
  /// Makes a container that is part of a known object known too, without counting as a read by the program.
  void make_known(PyObject* object, SourceId source);

  /// The next item of an iterator that is older than the call, unlooked at, with its source; empty at the end. Guarded, and in the journal.
  std::pair<Ref, SourceId> advance(PyObject* iterator);

  /// The program has seen that two objects are not one.
  void found_different(PyObject* left, PyObject* right);

  /// C code is going to read all of it: guards length or keys and all items, recursively.
  void expose(PyObject* object, int depth = 0) { expose(object, depth, false); }
  /// C code is going to give its items, one after the other, and looks nothing up in it.
  void expose_to_walk(PyObject* object) { expose(object, 0, true); }
  /// A loop of the program is going to read its items, one by one: what is in these is for whoever reads it.
  void expose_items(PyObject* iterable);
  /// The program is going to take the values of a dict by its keys, in their order: what is in the values is for whoever reads them.
  void expose_keys(PyObject* dict);
  /// Adds to an empty set of this capture an item in which numbers vary, without guarding what these hash to (loose_sets.cpp).
  void add_loosely(PyObject* set, PyObject* item);
  /// The item of such a set; null for other sets.
  PyObject* loose_item(PyObject* set);
  /// Guards the numbers in the item of such a set: something is going to be looked up in it.
  void tighten(PyObject* set);
  /// The key of a dict that is equal to the number `key` and varies itself (loose_keys.cpp), with that guarded; empty for none. The heap's own lookups find it.
  Ref loose_key(PyObject* dict, PyObject* key);
  /// Guards the keys of a dict that vary: C code is going to look something up in it.
  void settle_keys(PyObject* dict);
  bool is_empty_new_dict(PyObject* object) const { return PyDict_CheckExact(object) && PyDict_GET_SIZE(object) == 0 && is_born(object) && !source_of(object); }
  bool has_loose_keys(PyObject* dict) const { return loose_dicts_.contains(dict); }
  /// Fills an empty dict of this capture with the items of one under whose keys numbers vary, which vary on.
  void copy_with_loose_keys(PyObject* dict, PyObject* copy);
  /// A method of `dict` goes over an older OrderedDict: guarded to be in the order by which that goes.
  void guard_insertion_order(PyObject* dict);
  /// Its keys and values past any override, with nothing guarded, though an OrderedDict looks each of its keys up.
  Ref items_of(PyObject* dict);
  /// C code is going to give the values of a dict whose keys are ints, of which nothing is guarded then; false where `expose` is to do that.
  bool expose_values(PyObject* dict);
  /// The same value with stand-ins instead of real tensors inside lists, tuples and dicts: for calls of recorded operations.
  Ref substitute(PyObject* object, int depth = 0);
  /// Whether it is a real tensor, or holds or walks over one at any depth, so that C code that asks the elements would read it unseen.
  bool holds_tensor(PyObject* object);

  /// The real tensor and its source behind a stand-in that is an input; null for results of operations.
  PyObject* real_of(PyObject* stand_in) const {
    const auto found = reals_.find(stand_in);
    return found == reals_.end() ? nullptr : found->second;
  }

  /// While it lives, what the program reads is read again by a reader that runs after the call.
  GuardSet::ReadAgain read_again_by(PyObject* reader) {
    exposed_.clear();
    return {guards_, reader};
  }

  // ---- writes (writes.cpp): those to older objects go into the journal, and are taken back by the rollback
  /// Whether the object is older than the call; false for one that was born here. Breaks the graph, naming `what`, for an unknown one.
  bool is_older(PyObject* object, const char* what);
  /// Breaks the graph, naming `what`, unless the object was born here: for changes that no journal can hold.
  void require_writable(PyObject* object, const char* what);
  /// dict[key] = value past any override; deletes a key that is there when `value` is null.
  void store_key(PyObject* dict, PyObject* key, PyObject* value);
  /// object.__setattr__, or __delattr__ when `value` is null: a slot, an entry of the `__dict__`, an attribute of a class.
  void store_attribute(PyObject* owner, PyObject* name, PyObject* value);
  /// What the program has made the `.grad` of a stand-in; empty where it has not yet.
  Ref gradient_of(PyObject* stand_in) const;
  /// Makes it that. That of an older tensor is in no journal until `journal_gradients`: of several that follow each other only the last is written.
  void store_gradient(PyObject* stand_in, PyObject* value);
  /// Notes that what happens from here on depends on the `.grad` of an older tensor, which the program has not made anything else yet.
  void note_gradient_read(PyObject* stand_in) { read_gradients_.insert(stand_in); }
  /// An older tensor and its `.grad`, of which the program does nothing but drop it, before a run may end: the graph may as well find it dropped.
  struct DroppedGradient {
    SourceId of, gradient;
  };
  std::span<const DroppedGradient> dropped_gradients() const { return dropped_gradients_; }
  void journal_gradients();
  /// The dict that the program has made that of the hooks of a leaf, before its gradient is accumulated or after, or the dict itself where it is that of one; else empty.
  Ref hooks_of(PyObject* stand_in, bool after) const;
  bool has_new_hooks() const { return !hooks_.empty(); }
  void store_hooks(PyObject* stand_in, bool after, PyObject* name, PyObject* hooks);
  /// Empties the cell when `value` is null.
  void store_cell(PyObject* cell, PyObject* value);
  /// Must come before C code changes an older container. With `reads` what it does depends on what the container holds: guards all of it.
  Change& before_change(PyObject* container, bool reads);
  /// Guards all that an older, written container held before its first write.
  void guard_original(PyObject* container);
  /// Whether the program has written this attribute of a class, or this slot (by its descriptor) of an object.
  bool wrote_attribute(PyObject* owner, PyObject* name_or_slot) const { return finds_written(attributes_.count({owner, name_or_slot}) != 0); }
  bool wrote_along_bases(PyTypeObject* type, PyObject* name) const;
  bool wrote_container(PyObject* container) { return changes_.find(container) != nullptr; }
  /// Whether the program has written an attribute or an item of this older object.
  bool wrote_object(PyObject* object);
  bool wrote_cell(PyObject* cell) const { return finds_written(attributes_.count({cell, nullptr}) != 0); }
  Journal& journal() { return journal_; }
  /// The journal will change this object, which the program has not seen yet: breaks the graph, naming `why` (a literal), where it comes to it.
  void hide(PyObject* object, const char* why) { hidden_.emplace(object, why); }
  /// While it lives, writes to all that is older than it break the graph; `name` (a literal) says in what.
  class NoWrites {
   public:
    NoWrites(Heap& heap, const char* name) : heap_(heap) { heap.branches_.push_back({name, {}, nullptr}); }
    ~NoWrites() { heap_.branches_.pop_back(); }
    NoWrites(const NoWrites&) = delete;
    NoWrites& operator=(const NoWrites&) = delete;

   private:
    Heap& heap_;
  };

  /// While it lives, notes whether the program writes to anything that is older than it.
  class NotedWrites {
   public:
    explicit NotedWrites(Heap& heap) : heap_(heap) { heap.branches_.push_back({nullptr, {}, &any_}); }
    ~NotedWrites() { heap_.branches_.pop_back(); }
    NotedWrites(const NotedWrites&) = delete;
    NotedWrites& operator=(const NotedWrites&) = delete;
    bool any() const { return any_; }

   private:
    Heap& heap_;
    bool any_ = false;
  };

  /// Breaks the graph, naming `what`, in a branch of the program that may not write to what is older than it.
  void require_no_branch(const char* what) const;

  /// The ctx of a torch.autograd.Function holds these, whose backward is evaluated here: should one leave the capture, the graph ends before the
  /// function, of whose results `result` is one.
  void hold_by_context(std::vector<Ref> objects, const Ref& result) {
    for (Ref& object : objects) held_by_contexts_.try_emplace(object.get(), std::pair(object, result));
  }
  void require_not_held_by_context(PyObject* object) const {
    if (const auto held = held_by_contexts_.find(object); held != held_by_contexts_.end())
      throw Unbuildable(held->second.second.get(), "an object leaves the graph that the ctx of a torch.autograd.Function holds, whose backward reads it as it is then");
  }
  /// Keeps an object until the capture ends: its address must stay its own.
  void keep_alive(const Ref& object) { kept_.push_back(object); }
  /// Whether the program has made classes, which are cycles of objects.
  bool holds_new_classes() const {
    return std::ranges::any_of(kept_, [](const Ref& object) { return PyType_Check(object.get()); });
  }
  /// Adds a step that takes back a change of real state.
  void on_rollback(std::function<void()> undo) { undo_.push_back(std::move(undo)); }
  /// Takes back all changes, last first.
  void rollback();

  /// The real tensors that were replaced, in the order of Recorder::input.
  const std::vector<SourceId>& inputs() const { return inputs_; }

 private:
  struct Known {
    Ref object;
    SourceId source;
    Ref stand_in;
  };
  /// Whether what is read was written in this capture. Nobody reads that again later: it is there from the end of the call on.
  bool finds_written(bool written) const {
    if (written && guards_.are_read_again()) throw GraphBreak("what runs after the call reads something that was written before in the call");
    return written;
  }
  Ref enter_known(SourceId source, const Known& known);
  Ref enter_tensor(SourceId source, PyObject* object);
  void note_class_of_tensors(PyTypeObject* type);
  void guard_length(PyObject* container, SourceId source, Py_ssize_t length);
  bool varies_in_class(PyTypeObject* type, PyObject* name, PyObject* found);
  bool is_varying_int(PyObject* object);
  /// What an older dict holds under a number that varies, with that guarded: the value, null where there is none, and where it is found.
  struct NumberedItem {
    Ref value;
    SourceId place;
    Ref now;  // the number
  };
  std::optional<NumberedItem> item_of_older(PyObject* dict, PyObject* number);
  /// The key as the program and later calls know it, and that of the dict now.
  struct StoredKey {
    Ref key, held;
  };
  StoredKey key_to_store(PyObject* dict, PyObject* given, bool stores);
  bool is_unwritten(SourceId place);
  bool grew_by_numbers(PyObject* dict, const Change& change);
  void expose(PyObject* object, int depth, bool walked);
  Ref enter_sizes(SourceId source, PyObject* sizes);
  void enter_function(SourceId source, PyObject* object);
  void enter_bound_builtin(SourceId source, PyObject* object);
  void expose_known(PyObject* object, SourceId source, const TypeTraits& traits);
  void guard_keys(SourceId source, PyObject* dict);
  void guard_items_of_set(SourceId source, PyObject* items);
  void note_birth(PyObject* object) {
    born_[object] = now;
    for (Branch& branch : branches_) branch.born.insert(object);
  }
  void require_in_branch(PyObject* object, const char* what) const;
  /// The program changes an older object: all others of its class that it finds must be others at every call.
  void note_written(PyObject* object);
  /// The object that is known from a source; null for none.
  PyObject* known_at(SourceId source) const;
  void store_slot(PyObject* owner, PyObject* slot, PyObject* value);
  void store_attribute_of_class(PyObject* type, PyObject* name, PyObject* value);
  void journal_asked_inputs();

  Recorder& recorder_;
  GuardSet& guards_;
  TypeTable types_;
  std::unordered_map<PyObject*, Known> known_;
  std::unordered_map<std::uint32_t, PyObject*> known_at_;  // by source
  /// Addresses, not references: finalizers must run when the program drops an object. An address that is used again belongs to an
  /// object made later in the same capture, because older objects keep theirs: it is born here too.
  std::unordered_map<PyObject*, std::size_t> born_;
  std::unordered_map<PyObject*, std::size_t> made_;  // results of operations
  std::unordered_map<PyObject*, std::pair<Ref, Ref>> loose_;  // sets and their items
  std::unordered_set<PyObject*> loose_dicts_;                 // by address: a key that varies may be in them
  std::unordered_map<PyObject*, std::pair<Ref, Ref>> held_by_contexts_;  // objects, and a result of the function
  std::unordered_set<PyObject*> raised_;
  std::unordered_set<PyObject*> exposed_;
  std::unordered_map<PyObject*, PyObject*> reals_;  // stand-in -> real; both held by known_
  std::unordered_map<PyObject*, std::size_t> gradient_slots_;  // by stand-in
  std::vector<std::pair<Ref, Ref>> gradients_;                 // stand-ins, and what is their `.grad` now
  std::unordered_set<PyObject*> read_gradients_;               // stand-ins
  std::vector<DroppedGradient> dropped_gradients_;
  std::map<std::pair<PyObject*, bool>, Ref> hooks_;  // by stand-in, and by the dict itself
  std::unordered_map<PyObject*, const char*> hidden_;
  std::vector<std::function<void()>> undo_;
  std::vector<Ref> kept_;
  struct Progress {
    Ref copy;
    Py_ssize_t taken = 0;
  };
  std::unordered_map<PyObject*, Progress> progress_;  // of older iterators
  Changes changes_;
  Journal journal_;
  struct Branch {
    const char* name;
    std::unordered_set<PyObject*> born;
    bool* wrote = nullptr;  // where writes are only noted
  };
  std::vector<Branch> branches_;  // of the program, that may not write to what is older than they are, or where that is noted
  struct PairHash {
    std::size_t operator()(const std::pair<PyObject*, PyObject*>& pair) const {
      return std::hash<PyObject*>()(pair.first) * 31 + std::hash<PyObject*>()(pair.second);
    }
  };
  std::unordered_set<std::pair<PyObject*, PyObject*>, PairHash> attributes_;  // written: (class, name), (object, slot), (cell, null)
  std::unordered_set<PyTypeObject*> written_types_;
  std::unordered_set<PyTypeObject*> tensor_types_;  // that stand-ins pass for
  std::unordered_set<PyTypeObject*> looked_up_;    // whose way to look attributes up is guarded
  std::unordered_set<PyTypeObject*> asked_types_;  // whose special methods are guarded
  std::vector<SourceId> inputs_;
  /// While it lives, stand-ins of ints hash as the int now, with nothing guarded.
  struct HashesLoosely {
    explicit HashesLoosely(Recorder& recorder) : recorder(recorder), before(recorder.hash_unguarded(true)) {}
    ~HashesLoosely() { recorder.hash_unguarded(before); }
    Recorder& recorder;
    bool before;
  };
  /// While it lives, C code is about to read the objects themselves: no int among them becomes a symbol.
  struct Exposing {
    explicit Exposing(Heap& heap) : flag(heap.exposing_), before(std::exchange(flag, true)) {}
    ~Exposing() { flag = before; }
    bool& flag;
    bool before;
  };
  bool exposing_ = false;
};

/// The key under which a dict holds what the program knows as `key`: for the stand-in of a tensor, the tensor itself where the dict has that.
Ref key_held_by(Heap& heap, PyObject* dict, PyObject* key);

}  // namespace tenon::python
