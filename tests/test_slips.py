"""Every public call tells a misspelt or missing argument by name, and so does every public class a name."""

import inspect
import pickle

import pytest

import onlineic as ic
from onlineic.errors import InvalidCallError, InvalidParameterError
from onlineic.noise import SimulatedNoise
from onlineic.questions import Answering
from onlineic.slips import meant, public

MADE_INSIDE = {"Query", "Measurement", "Partition", "UpdateRule"}  # nobody who begins calls these
TAKE_ANY = {"where", "rescaled", "PrivateData"}  # conditions by attribute; a loader, see below
PUBLIC = sorted({*ic.__all__} - MADE_INSIDE)
METHODS = sorted(
    (owner.__name__, name)
    for owner in (ic.OnlineIC, Answering, ic.PrivateData, ic.Domain, ic.TableBudget, ic.Periods)
    for name, held in vars(owner).items()
    if name[0] != "_" and (inspect.isfunction(held) or isinstance(held, classmethod | staticmethod))
)


@pytest.mark.parametrize("name", [name for name in PUBLIC if name not in TAKE_ANY])
def test_an_argument_that_a_public_call_does_not_have_is_named(name):
    with pytest.raises(InvalidCallError, match="must get arguments that it has, got 'zzzz'; "):
        getattr(ic, name)(zzzz=1)


@pytest.mark.parametrize(("owner", "name"), METHODS)
def test_every_method_is_marked(owner, name):
    held = inspect.getattr_static(getattr(ic, owner, Answering), name)

    assert hasattr(getattr(held, "__func__", held), "__wrapped__")


@public
def ask(question, /, where=None, *, of):
    """Ask.

    >>> session.ask("age", of="sex").value
    """
    if where == "inside":
        raise TypeError("from inside")
    if where == "below":
        len(3)
    return question, where, of


@public
class Counter:
    """Counts.

    >>> counter = Counter(start=3)
    """

    def __init__(self, start):
        self.start = start

    def add(self, more, *, times=1):
        return self.start + more * times

    @classmethod
    def of(cls, start):
        return cls(start)

    @staticmethod
    def zero():
        return 0


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: ask(), "ask must get question and of, got none; write session.ask(\"age\", of=\"sex\")."),
        (lambda: ask(1, of=2, off=3), "ask must get arguments that it has, got 'off'; did you mean 'of'?"),
        (lambda: ask(1, of=2, sex="F"), "it has where, of; a condition on attributes is where={'sex': ..}."),
        (lambda: ask(1, 2, 3), "ask must get at most 2 without a name (question, where), got 3 values; "),
        (lambda: ask(1, 2, where=3, of=4), "ask must get where once, got it twice; leave out one of them."),
        (lambda: Counter(), "Counter must get start, got none; write Counter(start=3)."),
        (lambda: Counter(1).add(), "Counter.add must get more, got none; write Counter.add(more)."),
        (lambda: Counter(1).add(1, 2), "got 2 values; name the others: times=..."),
        (lambda: Counter.of(1, 2), "Counter.of must get at most 1 without a name (start), got 2 values"),
        (lambda: Counter.zero(a=1), "zero must get arguments that it has, got 'a'; it has none."),
    ],
)  # fmt: skip
def test_a_call_that_does_not_fit_says_what_does(call, said):
    with pytest.raises(InvalidCallError) as refused:
        call()

    assert said in str(refused.value)
    assert isinstance(refused.value, TypeError)
    assert refused.value.code == "invalid-call"
    assert refused.value.__cause__ is refused.value.__context__ is None


@pytest.mark.parametrize("where", ["inside", "below"])
def test_an_error_from_inside_is_left_as_it_is(where):
    with pytest.raises(TypeError) as refused:
        ask(1, where, of=2)

    assert type(refused.value) is TypeError


def test_a_call_that_fits_is_as_it_was():
    assert (1, 2, 3) == ask(1, 2, of=3)
    assert 5 == Counter(start=1).add(2, times=2)
    assert 4 == Counter.of(4).start
    assert ["start"] == [*inspect.signature(Counter).parameters]
    assert pickle.loads(pickle.dumps(ic.where)) is ic.where


def test_nothing_of_a_table_is_in_an_error_of_its_loader():
    with pytest.raises(InvalidCallError) as refused:
        ic.PrivateData.from_records({"age": [4711]}, ic.Domain.of(age=9999), neighbors="add-remove")
    frames, trace = [], refused.value.__traceback__
    while trace is not None:
        frames.append(trace.tb_frame)
        trace = trace.tb_next

    assert "PrivateData.from_records must get arguments that it has, got 'neighbors'; did you mean " in str(
        refused.value
    )
    assert not any("4711" in repr(frame.f_locals) for frame in frames[1:])


@pytest.mark.parametrize(
    ("owner", "word", "said"),
    [
        (ic.PrivateData, "from_pandas", "write from_frame(table, domain)"),
        (ic.PrivateData, "from_parquet", "write from_frame('FILE.parquet', domain)"),
        (ic.PrivateData, "from_cvs", "did you mean 'from_csv'?"),
        (ic.Domain, "infer", "a domain is public, never read from the table"),
        (ic.OnlineIC, "std", "write variance('age').value ** 0.5"),
        (ic, "above", "write at_least(31) for above 30"),
    ],
)
def test_words_of_other_libraries_lead_to_ours(owner, word, said):
    assert said in meant(word, [name for name in dir(owner) if name[0] != "_"])


@pytest.mark.parametrize("owner", [ic.PrivateData, ic.Domain], ids=["PrivateData", "Domain"])
def test_a_loader_that_is_not_there_is_told_on_the_class(owner):
    with pytest.raises(AttributeError, match=f"{owner.__name__} has no attribute 'from_dict'; write "):
        assert owner.from_dict
    assert not hasattr(owner, "_zzz")


def test_released_objects_tell_their_names():
    data = ic.PrivateData.from_records({"age": [1, 2, 2, 3] * 500}, ic.Domain.of(age=range(5)))
    session = ic.OnlineIC(data, ic.Budget(1.0, 1e-6), noise=SimulatedNoise(1))
    mean = session.mean("age")
    for one in (data, session, mean, session.median("age"), session.cdf("age"), session.histogram("age")):
        with pytest.raises(AttributeError, match=f"{type(one).__name__} has no attribute 'zzzz'; see dir"):
            assert one.zzzz
    with pytest.raises(AttributeError, match="Derived has no attribute 'margin'; write error_bound"):
        assert mean.margin


def test_a_wrong_call_spends_nothing():
    data = ic.PrivateData(([500, 500]), ic.Domain.of(a=2))
    with pytest.raises(InvalidCallError):
        ic.OnlineIC(data, ic.Budget(1.0, 1e-6), alpha=0.1)
    with pytest.raises(InvalidParameterError):
        ic.OnlineIC(data, ic.Budget(1.0, 1e-6), certify=2)

    assert (0, ()) == (data.reads, data.budgets)
