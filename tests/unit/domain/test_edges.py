"""Edges of bins: decimals that can be typed back in Python, SQL and JSON; round widths; what a file keeps."""

import itertools
import json
import math

import numpy as np
import pytest

import onlineic as ic
from onlineic.ask import condition, described
from onlineic.domain import Binned
from onlineic.errors import InvalidQueryError

DRAW = np.random.default_rng(52)


def declarations():
    """Three that were met, and two hundred at random: of all sizes, widths, lists made by arithmetic."""
    found = [ic.number(0, 4, bins=40), ic.number(0, 50_000), ic.binned(np.arange(0, 1.1, 0.1))]
    for _ in range(200):
        low = round(float(DRAW.choice([0.0, 1.0, -1.0]) * 10.0 ** DRAW.integers(-3, 5)), 6)
        width, bins = float(DRAW.choice([0.1, 0.3, 0.7, 1, 2.5, 7, 1 / 3])), int(DRAW.integers(2, 30))
        width *= 10.0 ** int(DRAW.integers(-2, 4))
        form = DRAW.integers(3)
        if form == 0:
            found.append(ic.number(low, low + width * bins))
        elif form == 1:
            found.append(ic.number(low, low + width * bins, bins=bins))
        else:
            found.append(ic.binned(low + width * np.arange(bins + 1)))
    return found


DECLARED = declarations()


def typed(edge):
    """An edge as it is shown."""
    return f"{edge:g}" if float(f"{edge:g}") == edge else repr(edge)


@pytest.mark.parametrize("place", range(0, len(DECLARED), 29))
def test_every_printed_edge_can_be_typed_back(place):
    pytest.importorskip("sqlglot")
    for kind in DECLARED[place : place + 29]:
        domain = ic.Domain.of(x=kind, sex=["F", "M"])
        assert ic.Domain.from_json(domain.to_json()) == domain
        for at in {1, len(kind.edges) // 2, len(kind.edges) - 2}:
            text = typed(kind.edges[at])
            python = ic.where(x=ic.below(eval(text))).bind(domain)  # what a person types
            asked = [
                condition(f"x < {text}", domain),
                described(json.loads(f'{{"x": {{"below": {text}}}}}'), domain),
            ]

            assert {python.key} == {one.bind(domain).key for one in asked}
            assert kind.cells * at == kind.interval("x", -math.inf, kind.edges[at], False)[1]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (ic.number(0, 4, bins=40), [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6]),
        (ic.binned(np.arange(0, 1.1, 0.1)), [0.0, 0.1, 0.2, 0.3]),
        (ic.binned([0.1 + 0.2, 1 / 3, 1.1]), [0.3, 1 / 3, 1.1]),
        (ic.number(0, 50_000), [0.0, 1000.0, 2000.0]),
        (ic.number(3, 997), [3.0, 20.0, 40.0]),
        (ic.number(17, 90), [17.0, 18.0, 19.0]),
        (ic.number(0, 1, bins=[0, 0.25, 1]), [0.0, 0.25, 1.0]),
    ],
)
def test_edges_are_decimals_and_widths_are_round(kind, expected):
    assert expected == [*kind.edges[: len(expected)]]


@pytest.mark.parametrize(
    ("low", "high"), [(0, 50_000), (-7, 3), (1e-6, 2e-6), (0, 3), (12, 1e9), (1e15, 1e15 + 2)]
)
def test_by_default_there_are_about_64_bins(low, high):
    edges = ic.number(low, high).edges

    assert (low, high) == (edges[0], edges[-1])
    assert all(one < other for one, other in itertools.pairwise(edges))
    assert len(edges) - 1 <= 128
    assert high > 1e15 or 35 <= len(edges) - 1


def test_a_file_keeps_the_bins_that_it_was_written_with():
    """Its edges are taken as they are, and asked by the decimals beside them."""
    old = Binned((0.0, 0.1, 0.2, 0.30000000000000004, 0.4), clip=True, ends=True)
    domain = ic.Domain.from_json(ic.Domain.of(x=old).to_json())

    assert old == domain.attribute("x")
    asked = ic.where(x=ic.span(0.1, 0.3)).bind(domain)
    assert asked.key == ic.where(x=ic.span(0.1, 0.30000000000000004)).bind(domain).key
    pytest.importorskip("sqlglot")
    assert asked.key == condition("x >= 0.1 AND x < 0.3", domain).bind(domain).key


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (
            lambda domain: ic.where(x=ic.below(0.65)).bind(domain),
            "got 0.65; the nearest edges are 0.6 and 0.7",
        ),
        (lambda domain: ic.where(x=ic.below(0.6 + 1e-12)).bind(domain), "the nearest edges are 0.6 and 0.7"),
        (lambda domain: condition("x < 0.65", domain), "got 0.65; the nearest edges are 0.6 and 0.7"),
        (lambda domain: condition("x < 3.99", domain), "the nearest edges are 3.9 and 4"),
    ],
)
def test_a_cut_inside_a_bin_is_refused_with_the_two_nearest_edges(ask, said):
    pytest.importorskip("sqlglot")
    with pytest.raises(InvalidQueryError, match=said):
        ask(ic.Domain.of(x=ic.number(0, 4, bins=40)))


def test_the_domain_says_where_it_can_be_cut():
    domain = ic.Domain.of(
        paid=ic.number(0, 50_000),
        rate=ic.binned([0, 0.5, 1]),
        odd=ic.binned([0, 1, 3, 4, 8, 9, 20, 31, 40, 77]),
    )

    assert [
        "numbers 0 to 50000, cut at multiples of 1000, with both ends of each bin, clipped",
        "numbers cut at 0, 0.5, 1",
        "numbers 9 bins cut at 0, 1, 3, 4, .. 40, 77",
    ] == [line.split(None, 2)[2] for line in str(domain).splitlines()[1:]]


def test_another_domain_than_that_of_a_ledger_says_that_a_file_keeps_its_bins(tmp_path):
    counts = np.full(20, 50)
    budget, options = ic.Budget(1.0, 1e-6), {"ledger": str(tmp_path / "f.db"), "table": "t"}
    ic.OnlineIC(
        ic.PrivateData(counts, ic.Domain.of(x=ic.binned(np.linspace(0, 1, 21)))), budget, **options
    ).close()
    other = ic.PrivateData(counts, ic.Domain.of(x=ic.binned(np.linspace(0, 2, 21))))
    with pytest.raises(
        ic.errors.LedgerMismatchError, match="a file keeps the bins that it was declared with"
    ):
        ic.OnlineIC(other, budget, **options)


@pytest.mark.parametrize(
    ("kind", "values", "codes"),
    [
        (ic.boolean(), [True, 0, "TRUE", "false", 1], [1, 0, 1, 0, 1]),
        (ic.boolean("yes", "no"), ["yes", "no", 1, False], [1, 0, 1, 0]),
        (ic.boolean(1, 2), [1, 2, True, "2"], [1, 0, 1, 0]),
        (ic.boolean(0, 1), [0, 1, "0"], [1, 0, 1]),
        (ic.boolean(["y", "Y"], ["n", "N"]), ["y", "Y", "n", "N"], [1, 1, 0, 0]),
    ],
)
def test_booleans_are_read_as_they_were_declared(kind, values, codes):
    assert codes == kind.read(np.array(values, object)).tolist()
    assert (False, True) == (kind.label(0), kind.label(1))
    assert ic.Domain.from_json(ic.Domain.of(x=kind).to_json()) == ic.Domain.of(x=kind)


def test_booleans_of_a_file_load_as_booleans(tmp_path):
    (tmp_path / "t.csv").write_text("smokes,code\n" + "yes,1\nno,2\nno,1\n" * 50)
    domain = ic.Domain.of(smokes=ic.boolean("yes", "no"), code=ic.boolean(1, 2))

    data = ic.PrivateData.from_csv(tmp_path / "t.csv", domain)

    exact = ic.evaluate.exact_values(data, [ic.where(smokes=True), ic.where(code=True)])

    assert np.allclose([1 / 3, 2 / 3], exact)


@pytest.mark.parametrize("words", [(3.5, 1), ([True], "no"), (None, "no"), ("yes", "yes")])
def test_words_that_stand_for_nothing_or_for_both_are_refused(words):
    with pytest.raises(ic.errors.InvalidDomainError, match=r"must be (a word|distinct)"):
        ic.boolean(*words)
