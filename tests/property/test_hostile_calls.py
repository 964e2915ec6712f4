"""Hostile calls of all that is public: an answer, or an error of our tree, in seconds and without a trace.

What is called is found by the faces of the wings and by signatures, so that what is new is covered. Some
hundred calls run by default, ten thousand with `-m fuzz`.
"""

import datetime
import decimal
import fractions
import importlib
import inspect
import itertools
import signal
import warnings

import numpy as np
import pytest

import onlineic as ic
from onlineic.data import PrivateData
from onlineic.errors import OnlineICError
from onlineic.noise import SimulatedNoise

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
# wings that people call; what the others offer is called by these alone, with what these have checked
WINGS = (
    "accounting",
    "baselines",
    "bounds",
    "datasets",
    "domain",
    "evaluate",
    "mechanisms",
    "noise",
    "offline",
    "queries",
    "session",
    "testing",
    "updates",
)
# what wings call of each other, with what a face has checked: no second check in the inner loop
BETWEEN_WINGS = {
    "onlineic": (),
    "accounting": ("TableCharge", "per_row", "share_of", "table_charge"),
    "domain": ("Misfit", "column_array"),
    "queries": (
        "AnswerMemory",
        "Boxes",
        "BoundMarginal",
        "Factor",
        "Partition",
        "PartitionRule",
        "Queries",
        "Query",
        "block_weights",
        "canonical",
        "derived",
        "one_way",
        "pairs_of",
        "sets_of",
        "spread",
    ),
    "session": (
        "AnswerBook",
        "Answers",
        "Belief",
        "Core",
        "Prices",
        "replay",
    ),
    "updates": ("FittedAt", "FittedStart", "MeasuredSteps"),
}
# classes whose methods are such: kinds of attributes, rules, hypotheses, plans, records
INNER = (
    "Attribute",
    "Categorical",
    "IntegerRange",
    "Binned",
    "Dates",
    "Grid",
    "UpdateRule",
    "Hypothesis",
    "Plan",
    "Query",
    "Partition",
    "Measurement",
    "Noise",
    "BoundMarginal",
)
INNER_METHODS = {
    "Condition.codes",
    "PrivateData.exact_counts",
    "PrivateData.enter",
    "PrivateData.read",
    "PrivateData.exact_counts_many",
    "Answer.to_dict",
    "PrivateData.check_file",
    "Domain.encoded",
    "OnlineIC.close",
}
SECONDS = 60.0  # of the processor: a call that takes more, none of which takes a tenth, never ends


class Hostile:
    """Raises at whatever is asked of it."""

    def _never(self, *args, **kwargs):
        raise RuntimeError("never ask")

    __repr__ = __str__ = __eq__ = __hash__ = __iter__ = __len__ = __bool__ = __float__ = __int__ = _never
    __index__ = __array__ = __getitem__ = __call__ = __lt__ = __contains__ = __format__ = __getattr__ = _never


class Lying:
    """Has a repr of a megabyte that no terminal should see, equals everything, and never ends."""

    def __repr__(self):
        return "\x1b[2J\ud800\n" * 10**5

    def __eq__(self, other):
        return True

    def __hash__(self):
        return 0

    def __iter__(self):
        return itertools.repeat(self)

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        return self


ODD = [
    None,
    True,
    False,
    0,
    1,
    -1,
    2,
    7,
    0.0,
    0.5,
    1.5,
    -0.5,
    1e-310,
    1e308,
    float("nan"),
    float("inf"),
    -float("inf"),
    2**63,
    2**64,
    10**400,
    -(10**400),
    10**5000,
    1j,
    "",
    "a",
    "age",
    "\ud800",
    "\x00\x1b[31m",
    "x" * 10**5,
    b"a",
    bytearray(b"a"),
    (),
    [],
    {},
    set(),
    [None],
    ["a"],
    ["a", "a"],
    [[1], [1, 2]],
    {"a": 1},
    {1: 2},
    (1, 2),
    range(3),
    slice(1, 2),
    ...,
    NotImplemented,
    object(),
    int,
    len,
    lambda *given: given,
    ValueError("x"),
    iter([1]),
    np.zeros(0),
    np.zeros(()),
    np.zeros(3),
    np.zeros((2, 3)),
    np.full(3, np.nan),
    np.array(["x"]),
    np.array([None, "x"]),
    np.zeros(3, complex),
    np.zeros(3, "M8[s]"),
    np.zeros(2, [("a", float)]),
    np.ma.masked,
    np.int8(3),
    np.uint64(2**63),
    np.float16(0.5),
    np.longdouble(0.5),
    np.complex64(1),
    np.str_("a"),
    np.bytes_(b"a"),
    np.bool_(True),
    np.datetime64("NaT", "s"),
    np.datetime64("2024-03-05"),
    np.timedelta64(5, "s"),
    np.timedelta64(3, "ns"),
    np.void(b"a"),
    decimal.Decimal("0.5"),
    decimal.Decimal("sNaN"),
    fractions.Fraction(1, 3),
    fractions.Fraction(1, 10**400),
    datetime.date(2024, 3, 5),
    datetime.timedelta(1),
    Hostile(),
    Lying(),
    Hostile,
    Lying,
]
DOMAIN = ic.Domain.of(a=4, b=["x", "y", "z"], c=ic.binned([0.0, 1.0, 2.5]))
COUNTS = np.arange(1, DOMAIN.size + 1).reshape(DOMAIN.shape) * 50


def fresh_data():
    return PrivateData(COUNTS, DOMAIN)


def fresh_session():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        session = ic.OnlineIC(fresh_data(), ic.Budget(3.0, 1e-6), max_queries=30, noise=SimulatedNoise(4))
        session.answer_many([ic.where(a=0), ic.where(a=1, b="y")])
    return session


def plausible():
    """Return arguments of the right kind, so that calls get beyond the first check."""
    session = fresh_session()
    return [
        DOMAIN,
        session.hypothesis,
        fresh_data(),
        session,
        ic.Budget(1.0, 1e-9),
        ic.where(a=1),
        ic.where(b="x").bind(DOMAIN),
        ic.between(0, 2),
        ic.marginal("a", "b"),
        [ic.where(a=1), ic.where(a=2)],
        "b",
        ["a", "b"],
        "a >= 1",
        "SELECT COUNT(*) FROM t",
        {"a": 1},
        SimulatedNoise(1),
        SimulatedNoise,
        ic.MaximumEntropy(),
        ic.MultiplicativeWeights(),
        session.answer(ic.where(a=0)),
        session.transcript,
        session.plan,
        session.statistics(),
        3,
        0.1,
        100,
        1e-9,
        DOMAIN.attribute("a"),
        DOMAIN.attribute("b"),
        DOMAIN.attribute("c"),
        COUNTS,
        COUNTS.ravel() / COUNTS.sum(),
        session,
    ]


def found():
    """Return what is public by its name: functions, classes, and methods of classes."""
    callables = {}
    for wing in (None, *WINGS):
        module = ic if wing is None else importlib.import_module(f"onlineic.{wing}")
        for name in dir(ic) if wing is None else module.__all__:
            thing = getattr(module, name)
            if (
                name.startswith("_")
                or not callable(thing)
                or not getattr(thing, "__module__", "").startswith("onlineic")
            ):
                continue
            if isinstance(thing, type) and issubclass(thing, BaseException | Warning):
                continue
            if name in BETWEEN_WINGS.get(thing.__module__.split(".")[1], ()):
                continue
            callables.setdefault(id(thing), (f"{wing or 'onlineic'}.{name}", thing))
    return sorted(callables.values(), key=lambda pair: pair[0])


def methods(kind):
    """Return the public methods of a class that people call."""
    if any(base.__name__ in INNER for base in kind.__mro__) or kind.__module__.startswith("onlineic.updates"):
        return []
    return sorted(name for name in dir(kind) if not name.startswith("_") and own(kind, name))


def own(kind, name):
    static = inspect.getattr_static(kind, name)
    function = static.__func__ if isinstance(static, classmethod | staticmethod) else static
    written = inspect.isfunction(function) and function.__module__.startswith("onlineic")
    return written and f"{kind.__name__}.{name}" not in INNER_METHODS


PUBLIC = found()


def chosen(generator, given):
    """Return an argument: mostly of a right kind, else an odd one."""
    pool = given if generator.random() < 0.5 else ODD
    return pool[int(generator.integers(len(pool)))]


def arguments(generator, function, given):
    """Return arguments for a signature; sometimes too many or too few, as people forget them."""
    try:
        parameters = [*inspect.signature(function).parameters.values()]
    except (TypeError, ValueError):
        return [chosen(generator, given) for _ in range(int(generator.integers(3)))], {}
    positional, named = [], {}
    for parameter in parameters:
        needed = parameter.default is parameter.empty
        if not needed and generator.random() < 0.6:
            continue
        if parameter.kind is parameter.VAR_POSITIONAL:
            positional += [chosen(generator, given) for _ in range(int(generator.integers(3)))]
        elif parameter.kind is parameter.VAR_KEYWORD:
            if generator.random() < 0.5:
                named[str(generator.choice(["a", "b", "extra"]))] = chosen(generator, given)
        elif parameter.kind is parameter.POSITIONAL_ONLY or (
            needed and parameter.kind is not parameter.KEYWORD_ONLY and not named
        ):
            positional.append(chosen(generator, given))
        else:
            named[parameter.name] = chosen(generator, given)
    return positional, named


def state(session):
    """Return all that a session tells of itself: a refused call may change nothing of it."""
    return repr(session.statistics()), len(session.transcript), session.hypothesis.probabilities().tobytes()


class Slow(BaseException):
    pass


def timed_out(*_):
    raise Slow


def wrong_signature(error):
    """Whether Python itself refused the call."""
    text = str(error) if isinstance(error, TypeError) else ""
    return any(
        words in text
        for words in ("positional argument", "keyword argument", "required keyword", "abstract", "Protocols")
    )


def broken_promise(name, error):
    """Whether a check for authors of rules says what it is for."""
    return name.startswith("testing.check_") and isinstance(error, AssertionError)


def of_the_caller(given):
    """Whether code of the caller's was handed in to be called: what it raises is his."""
    return callable(given) and not type(given).__module__.startswith("onlineic")


def run(number, seed):
    """Make so many calls; return what went wrong."""
    generator = np.random.default_rng(seed)
    faults = []
    session, given = fresh_session(), plausible()
    instances = [one for one in given if type(one).__module__.startswith("onlineic") and methods(type(one))]
    previous = signal.signal(signal.SIGPROF, timed_out)
    try:
        for count in range(number):
            if generator.random() < 0.5:
                name, function = PUBLIC[int(generator.integers(len(PUBLIC)))]
                if isinstance(function, type) and generator.random() < 0.3 and methods(function):
                    method = str(generator.choice(methods(function)))
                    static = inspect.getattr_static(function, method)
                    if isinstance(static, classmethod | staticmethod):
                        name, function = f"{name}.{method}", getattr(function, method)
            else:
                owner = (
                    session
                    if generator.random() < 0.4
                    else instances[int(generator.integers(len(instances)))]
                )
                method = str(generator.choice(methods(type(owner))))
                name, function = f"{type(owner).__name__}.{method}", getattr(owner, method)
            positional, named = arguments(generator, function, given)
            before = state(session)
            signal.setitimer(signal.ITIMER_PROF, SECONDS)
            refused = True
            try:
                with warnings.catch_warnings(), np.errstate(all="ignore"):
                    warnings.simplefilter("ignore")
                    result = function(*positional, **named)
                    if inspect.isgenerator(result):
                        next(result, None)
                    refused = False
            except OnlineICError as error:
                text = str(error)
                if len(text) > 2100 or not text.replace("\n", "").isprintable():
                    faults.append((count, name, f"message {text[:100]!r} of {len(text)}"))
            except Slow:
                faults.append((count, name, "took too long"))
            except Exception as error:
                mine = any(map(of_the_caller, itertools.chain(positional, named.values())))
                if not (mine or wrong_signature(error) or broken_promise(name, error)):
                    faults.append((count, name, place(error)))
            finally:
                signal.setitimer(signal.ITIMER_PROF, 0.0)
            if refused and state(session) != before:
                faults.append((count, name, "a refused call changed the session"))
    finally:
        signal.signal(signal.SIGPROF, previous)
    return faults


def place(error):
    """Return where in the package an error came from."""
    lines = []
    trace = error.__traceback__
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if "/onlineic/" in file:
            lines.append(f"{file.rpartition('/onlineic/')[2]}:{trace.tb_lineno}")
        trace = trace.tb_next
    try:
        said = str(error)[:100]
    except Exception:
        said = "?"
    return f"{type(error).__name__} {said} at {' < '.join(lines[:-4:-1])}"


def test_some_hundred_hostile_calls_are_answered_or_refused_by_name():
    assert [] == run(300, seed=1)


@pytest.mark.fuzz
@pytest.mark.parametrize("seed", range(10, 20))
def test_ten_thousand_hostile_calls_are_answered_or_refused_by_name(seed):
    assert [] == run(1000, seed)
