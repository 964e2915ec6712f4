"""What a session is handed, and what it hands out, holds no array that anyone can write to."""

import contextlib

import attrs
import numpy as np
import pytest

import onlineic as ic
from onlineic.data import PrivateData
from onlineic.noise import SimulatedNoise
from onlineic.offline.construction import Workload
from onlineic.queries import GRID_BITS, Measurement, Partition, PartitionRule, Queries, marginal
from onlineic.queries.tables import immutable

DOMAIN = ic.Domain.of(a=6, b=4, c=ic.binned([0, 1, 5, 20]))
COUNTS = np.random.default_rng(3).multinomial(40_000, np.random.default_rng(4).dirichlet(np.ones(72)))
WEIGHTS = ic.weights([0, 0.5, 0.25, 1, 0.125, 0])
DENSE = ic.dense(np.linspace(0.0, 1.0, 72).reshape(DOMAIN.shape))
WRITTEN = {
    "intervals": ic.where(a=ic.between(1, 3), b=2),
    "codes": ic.where(a=ic.one_of(0, 2, 5)),
    "weights": ic.where(a=WEIGHTS, b=1),
    "one minus weights": ~ic.where(a=WEIGHTS),
    "dense": DENSE,
}


def batch():
    low = np.arange(6) % 4
    ends = {"a": (low, low + 2), "b": (np.zeros(6, np.int64), 1 + low % 3)}
    queries = Queries.where(DOMAIN, ends, complement=low > 1)
    for name in ("grid_bits", "sensitivities", "complements", "constants", "roundings"):
        getattr(queries, name)
    return queries


def session():
    one = ic.OnlineIC(PrivateData(COUNTS, DOMAIN), ic.Budget(1.0, 1e-6), noise=SimulatedNoise(1))
    one.answer_many([*WRITTEN.values()])
    one.answer_many(batch())
    one.answer(marginal("a", "b", where=ic.where(c=ic.span(1, 5))))
    return one


MADE = {
    **{name: lambda asked=asked: asked.bind(DOMAIN, GRID_BITS) for name, asked in WRITTEN.items()},
    "batch": batch,
    "part of a batch": lambda: batch()[1:5],
    "chosen of a batch": lambda: batch().chosen(np.array([0, 3, 5])),
    "bound as a batch": lambda: Queries.bound(DOMAIN, [one.bind(DOMAIN) for one in WRITTEN.values()]),
    "cross table": lambda: marginal("a", "b", where=ic.where(c=ic.span(1, 5))).bind(DOMAIN),
    "partition": lambda: Partition(DOMAIN, (0, 2), (np.array([0, 0, 1, 1, 2, 2]), np.arange(3))),
    "of a rule": lambda: PartitionRule().partition(ic.where(a=2, b=1).bind(DOMAIN)),
    "measurement": lambda: Measurement(
        Partition(DOMAIN, (1,), (np.arange(4),)), np.array([0.1, 0.2, 0.3, 0.4]), 0.01
    ),
    "workload": lambda: Workload.of(WRITTEN.values(), DOMAIN, 1000),
    "domain": lambda: DOMAIN,
    "plan": lambda: session().plan,
    "transcript": lambda: [*session().transcript],
}


def arrays(one, path="", seen=None):
    """Every array that an object holds, in fields and in what it has worked out, by the way to it."""
    seen = {} if seen is None else seen
    if id(one) in seen or isinstance(one, str | bytes | int | float | type):
        return
    seen[id(one)] = one
    if isinstance(one, np.ndarray):
        yield path, one
        if one.base is not None:
            yield from arrays(one.base, f"{path}.base", seen)
    elif isinstance(one, dict):
        for key, value in one.items():
            yield from arrays(value, f"{path}[{key}]", seen)
    elif isinstance(one, tuple | list | frozenset):
        for place, value in enumerate(one):
            yield from arrays(value, f"{path}[{place}]", seen)
    elif attrs.has(type(one)):
        for name in {name for kind in type(one).__mro__ for name in getattr(kind, "__slots__", ())}:
            with contextlib.suppress(AttributeError):  # of what was never asked for
                yield from arrays(object.__getattribute__(one, name), f"{path}.{name}", seen)


@pytest.mark.parametrize("name", MADE)
def test_no_array_of_what_a_session_is_handed_can_be_written_to(name):
    made = MADE[name]()
    for path, array in arrays(made):
        assert not array.flags.writeable, path
        with pytest.raises(ValueError, match="WRITEABLE"):
            array.setflags(write=True)


@pytest.mark.parametrize("name", ["weights", "one minus weights", "dense"])
def test_a_bound_query_costs_and_counts_what_it_did_whatever_was_tried_on_its_weights(name):
    """Planted before: its weights were made a million times larger, and its price stayed."""
    query, data = WRITTEN[name].bind(DOMAIN, 10), PrivateData(COUNTS, DOMAIN)
    before = data.exact_counts(query)
    for factor in query.factors:
        for array in () if factor.table is None else (factor.table, factor.floats):
            for act in (lambda one: one.setflags(write=True), lambda one: one.fill(10**6)):
                with pytest.raises(ValueError, match=r"WRITEABLE|read-only"):
                    act(array)

    assert before == data.exact_counts(query) <= data.n << query.grid_bits


def test_an_array_over_bytes_is_equal_plain_and_kept_as_it_is():
    class Own(np.ndarray):
        """A subclass may be two in one."""

    given = np.arange(12).reshape(3, 4)[:, ::2]
    for array in (given, given.view(Own), np.empty((0, 2)), np.array([True, False])):
        made = immutable(array)
        assert (np.ndarray, array.shape, array.dtype) == (type(made), made.shape, made.dtype)
        assert np.array_equal(array, made)
        assert made is immutable(made)
    part = immutable(given)[1:]
    assert part is immutable(part)
    given.flags.writeable = False  # which can be taken back
    with pytest.raises(ValueError, match="WRITEABLE"):
        immutable(given).setflags(write=True)
