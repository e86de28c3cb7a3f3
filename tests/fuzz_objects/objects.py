"""Objects of C types, and odd arguments, by the expressions that make them."""

PRELUDE = """
import array, collections, contextlib, copy, datetime, decimal, fractions, functools, io, itertools, math, operator, random, re, string, struct, types, uuid, weakref, zlib
import numpy as np
try:
    import torch
except ImportError:
    torch = None
def double(x): return x * 2
def first(x): return x[0]
Point = collections.namedtuple("Point", "x y")
"""

OBJECTS = [
    "5", "-7", "True", "2**70", "0.5", "float('nan')", "float('inf')", "1+2j", "None", "...", "NotImplemented", "'text'", "''", "'ünï'", "b'bytes'", "bytearray(b'abc')", "memoryview(b'abcd')",
    "memoryview(bytearray(b'abcd'))", "[3, 1, 2]", "[]", "[[1], [2]]", "(1, 'a', 2.5)", "()", "{'a': 1, 2: 'b'}", "{}", "{1, 2, 3}", "frozenset({1, 'a'})", "range(2, 9, 3)", "slice(1, 5, 2)",
    "{'a': 1}.items()", "{'a': 1}.keys()", "{'a': 1}.values()", "iter([1, 2, 3])", "iter({'a': 1})", "iter('ab')", "enumerate('ab')", "zip([1, 2], 'ab')", "map(double, [1, 2])", "filter(None, [0, 1])",
    "reversed([1, 2])", "property(double)", "staticmethod(double)", "classmethod(double)", "double", "len", "[].append", "'a'.join", "Point(1, 2)", "types.SimpleNamespace(a=1)", "types.MappingProxyType({'a': 1})",
    "functools.partial(double, 3)", "functools.partial(sorted, reverse=True)", "functools.lru_cache(double)", "operator.itemgetter(0)", "operator.itemgetter(0, 1)", "operator.attrgetter('real')", "operator.methodcaller('upper')",
    "functools.cmp_to_key(lambda a, b: a - b)(3)", "re.compile('(a)(b)?')", "re.match('(a)(?P<n>b)?', 'ab')", "datetime.date(2024, 2, 29)", "datetime.datetime(2024, 2, 29, 12, 30)", "datetime.timedelta(days=1, seconds=5)",
    "datetime.time(1, 2)", "datetime.timezone(datetime.timedelta(hours=2))", "decimal.Decimal('1.25')", "decimal.Decimal('NaN')", "fractions.Fraction(1, 3)", "array.array('d', [1.0, 2.0])", "array.array('i', [1, 2])",
    "collections.deque([1, 2], 3)", "collections.OrderedDict(a=1, b=2)", "collections.defaultdict(list, a=[1])", "collections.Counter('aab')", "collections.ChainMap({'a': 1}, {'b': 2})", 
    "itertools.chain([1], [2])", "itertools.islice([1, 2, 3], 2)", "itertools.groupby([1, 1, 2])", "itertools.product([1, 2], repeat=2)", "itertools.permutations([1, 2])", "itertools.accumulate([1, 2])", "itertools.tee([1, 2])[0]",
    "itertools.repeat(1, 3)", "itertools.zip_longest([1], [2, 3])", "itertools.starmap(max, [(1, 2)])", "io.StringIO('a\\nb')", "io.BytesIO(b'ab')", "struct.Struct('<i')", "random.Random(3)", "uuid.UUID(int=5)", "zlib.compressobj()",
    "ValueError('wrong')", "KeyError('k')", "type", "int", "list[int]", "int | str", "types.CellType(3)", "string.Template('$a')", "math", "weakref.WeakValueDictionary()",
]
ARRAYS = [
    "np.float64(1.5)", "np.int8(-3)", "np.bool_(True)", "np.str_('a')", "np.datetime64('2024-01-01')", "np.timedelta64(3, 'D')", "np.dtype('f4')", "np.dtype([('a', 'i4')])", "np.arange(6.0).reshape(2, 3)", "np.array([3, 1, 2])",
    "np.array(2.5)", "np.array(['a', 'b'])", "np.array([None, 1], dtype=object)", "np.ma.array([1, 2], mask=[0, 1])", "np.random.default_rng(0)", "np.random.RandomState(0)", "np.random.SeedSequence(3)", "np.nditer(np.arange(3))", "np.arange(3).flat",
    "np.broadcast(np.arange(3), 1)", "np.add", "np.sum", "np.ndindex(2, 2)", "np.arange(4).flags", "np.finfo('f4')", "np.iinfo('i2')", "np.poly1d([1, 2])", "np.vectorize(double)", "np.errstate(all='ignore')", "np.matrix([[1, 2]])", "np.rec.array([(1, 2.0)])",
]
TENSORS = [
    "torch.arange(6.0).reshape(2, 3)", "torch.tensor([3, 1, 2])", "torch.tensor(True)", "torch.nn.Parameter(torch.ones(2), requires_grad=False)", "torch.Size([2, 3])", "torch.float32", "torch.device('cpu')", "torch.strided", "torch.contiguous_format",
    "torch.Generator().manual_seed(0)", "torch.finfo(torch.float16)", "torch.iinfo(torch.int8)", "torch.ones(3).storage()", "torch.ones(3).untyped_storage()", "torch.relu",
    "torch.jit.script(torch.nn.ReLU())", "torch.jit.trace(torch.cos, torch.ones(1))", "torch.sparse_coo_tensor([[0]], [1.0], (2,))", "torch.nested.nested_tensor([torch.ones(1)])", "torch.max(torch.ones(2, 2), 0)", "torch.ones(2).numpy()", "torch.nn.Linear(2, 2)",
]
ARGUMENTS = [
    "0", "1", "-1", "3", "2.5", "True", "None", "'a'", "'real'", "b'a'", "[1, 2]", "(1, 2)", "{'a': 1}", "{1, 2}", "slice(0, 2)", "range(3)", "double", "int", "object()", "iter([1, 2])", "[[1, 2], [3, 4]]", "datetime.date(2024, 1, 1)", "datetime.timedelta(1)",
    "decimal.Decimal(2)", "fractions.Fraction(1, 2)", "collections.deque([1])", "functools.partial(double, 1)", "types.SimpleNamespace(a=1)", "np.float32(2)", "np.array([1.0, 2.0])", "np.int64(1)", "10**30", "float('nan')", "''", "()", "...", "ValueError('x')", "Point(0, 1)",
]
TENSOR_ARGUMENTS = ["torch.ones(2, 3)", "torch.tensor(1)", "torch.float64", "torch.Size([3])", "torch.device('cpu')"]

FORMS = [
    "o[{0}]", "{0} in o", "o + {0}", "{0} + o", "o * {0}", "o - {0}", "o == {0}", "o != {0}", "o < {0}", "o & {0}", "o | {0}", "o % {0}", "o // {0}", "o ** {0}", "o @ {0}", "divmod(o, {0})", "-o", "~o", "abs(o)", "len(o)", "bool(o)", "str(o)", "repr(o)", "f'{{o}}'", "f'{{o!r:>20}}'",
    "hash(o) == hash(o)", "list(o)", "tuple(o)", "sorted(o)", "set(o)", "dict(o)", "iter(o)", "next(o)", "reversed(o)", "enumerate(o)", "sum(o)", "max(o)", "min(o, {0})", "any(o)", "all(o)", "int(o)", "float(o)", "complex(o)", "round(o)", "operator.index(o)", "operator.length_hint(o)",
    "callable(o)", "o()", "o({0})", "o({0}, {1})", "isinstance(o, {0})", "isinstance({0}, o)", "type(o)", "o.__class__.__name__", "getattr(o, {0})", "hasattr(o, 'a')", "copy.copy(o)", "copy.deepcopy(o)", "zip(o, {0})", "map(o, {0})", "[*o]", "{{**o}}", "o is o", "not o", "vars(o)", "bytes(o)",
    "np.asarray(o)", "np.shape(o)", "np.add(o, {0})", "np.isscalar(o)", "functools.reduce(operator.add, o)", "itertools.chain(o, {0})", "range(o)", "'abc'[o]", "[1, 2, 3][o]", "math.floor(o)", "isinstance(o, collections.abc.Sized)", "o.a", "setattr(o, 'a', {0})", "del_(o, {0})", "set_(o, {0}, {1})",
]
