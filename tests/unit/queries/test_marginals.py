"""Cross tables: cells and blocks, conditions on keys and others, refusals, repeats, statuses."""

import numpy as np
import pytest

import onlineic as ic
from onlineic.data import PrivateData
from onlineic.errors import InvalidQueryError, SessionExhaustedError, TooLargeError
from onlineic.ledger import Easy, Hard
from onlineic.noise import SimulatedNoise
from onlineic.queries import marginal
from support.sessions import Still

DOMAIN = ic.Domain.of(a=4, b=3, c=2)
COUNTS = np.random.default_rng(2).multinomial(60_000, np.random.default_rng(1).dirichlet(np.full(24, 0.3)))
COUNTS = COUNTS.reshape(4, 3, 2)
N = 60_000


def opened(epsilon=2.0, delta=1e-6, data=None, **settings):
    settings = {"noise": SimulatedNoise(1)} | settings
    return ic.OnlineIC(data or PrivateData(COUNTS, DOMAIN), ic.Budget(epsilon, delta), **settings)


def exact(table):
    """The cells of a bound table, from the private table."""
    return table.table(PrivateData(COUNTS, DOMAIN).exact_counts(table.partition) / N) * N


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (("a",), COUNTS.sum(axis=(1, 2))),
        (("c", "a"), COUNTS.sum(axis=1).T),
        (("b", "c", "a"), COUNTS.transpose(1, 2, 0)),
    ],
)
def test_the_axes_of_a_table_are_its_names_in_order(names, expected):
    assert np.array_equal(expected, np.rint(exact(marginal(*names).bind(DOMAIN))))


@pytest.mark.parametrize(
    ("condition", "kept"),
    [
        (ic.where(b=1), np.s_[:, 1:2, :]),
        (ic.where(b=ic.one_of(0, 2)), np.s_[:, [0, 2], :]),
        (~ic.where(b=1), np.s_[:, [0, 2], :]),
        (ic.where(a=ic.between(1, 2)), np.s_[1:3]),
        (~ic.where(a=0), np.s_[1:]),
        (ic.where(a=ic.between(1, 2), b=1), np.s_[1:3, 1:2]),
    ],
)
def test_a_condition_keeps_the_records_that_meet_it_whether_on_a_key_or_not(condition, kept):
    expected = np.zeros_like(COUNTS)
    expected[kept] = COUNTS[kept]

    assert np.array_equal(
        expected.sum(axis=1).T, np.rint(exact(marginal("c", "a", where=condition).bind(DOMAIN)))
    )


def test_excluded_cells_are_zero_and_play_no_part_in_the_test():
    table = marginal("a", where=ic.where(a=ic.between(1, 2))).bind(DOMAIN)
    session = opened(threshold=0.999, hard_answers=2)
    answer = session.answer(marginal("a", where=ic.where(a=ic.between(1, 2))))

    assert [-1, 1, 2, -1] == table.cells.tolist()
    assert [0.0, 0.0] == answer.value[[0, 3]].tolist()
    assert (answer.value[1:3] > 0).all()
    assert [0.0, 5.0, 6.0, 0.0] == table.table(np.array([4.0, 5.0, 6.0, 7.0])).tolist()


def test_every_cell_of_a_table_stands_for_the_records_of_its_codes_alone():
    """The blocks of the partition cover the domain once: the sensitivity is that of one record."""
    for table in (
        marginal("a", "c").bind(DOMAIN),
        marginal("b", where=ic.where(a=1, c=0)).bind(DOMAIN),
        marginal("b", "a", where=~ic.where(a=1)).bind(DOMAIN),
    ):
        covered = sum(
            table.partition.block(index).weights().astype(int) for index in range(table.partition.blocks)
        )
        cells = table.cells[table.cells >= 0]

        assert (covered == 1).all()
        assert len(cells) == len(np.unique(cells)) >= 1


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: marginal(), "marginal must name one or more different attributes, got []"),
        (lambda: marginal("a", "a"), "marginal must name one or more different attributes"),
        (lambda: marginal(["a", "b"]), "marginal must name one or more different attributes"),
        (lambda: marginal(3), "marginal must name one or more different attributes"),
        (lambda: marginal("a", where="b"), "where must be a query made by where(...), got a str"),
        (lambda: marginal("q").bind(DOMAIN), "attribute must be one of the domain's, got 'q'"),
        (lambda: marginal("a", where=ic.where()).bind(DOMAIN), "the condition of a marginal must be"),
        (lambda: marginal("a", where=~ic.where(a=1, b=1)).bind(DOMAIN), "the condition of a marginal must"),
        (
            lambda: marginal("a", where=ic.dense(np.full((4, 3, 2), 0.5) + np.eye(4)[:, :3, None] / 4)).bind(
                DOMAIN
            ),
            "the condition of a marginal must be",
        ),
        (
            lambda: marginal("a", where=ic.dense(np.indices((4, 3, 2)).sum(axis=0) % 2)).bind(DOMAIN),
            "the condition of a marginal must be",
        ),
    ],
)
def test_what_is_no_table_is_refused_in_words(make, text):
    with pytest.raises(InvalidQueryError) as refused:
        make()

    assert str(refused.value).startswith(text)


def test_a_table_of_too_many_blocks_is_refused_before_it_is_made():
    with pytest.raises(TooLargeError, match="at most 65,536 blocks, got 1,000,000"):
        marginal("a", "b").bind(ic.Domain.of(a=1000, b=1000))


def test_a_hard_table_is_repeated_from_memory_without_a_read():
    data = PrivateData(COUNTS, DOMAIN)
    session = opened(data=data, threshold=1e-5, hard_answers=3, prior=ic.Histogram(DOMAIN))
    first = session.answer(marginal("a", "b"))
    reads, records = data.reads, session.transcript
    kept = first.value.copy()
    first.value[:] = 7.0
    again = session.answer(marginal("a", "b"))

    assert ("hard", "repeat") == (first.status, again.status)
    assert np.array_equal(kept, again.value)
    assert first.error_bound == again.error_bound
    assert (reads, records) == (data.reads, session.transcript)


def test_two_tables_of_one_shape_are_not_taken_for_one_another():
    session = opened(threshold=1e-5, hard_answers=6)
    asked = [
        marginal("a"),
        marginal("a", where=ic.where(b=1)),
        marginal("a", where=ic.where(b=2)),
        marginal("a", where=~ic.where(b=1)),
        marginal("b", "c"),
        marginal("c", "b"),
    ]

    assert "repeat" not in [session.answer(table).status for table in asked]


def test_an_easy_table_is_the_hypothesis_rounded_to_records_and_an_exhausted_session_says_so():
    session = opened(threshold=0.9, hard_answers=1)
    easy = session.answer(marginal("a", "c"))
    record = session.transcript[-1]

    assert ("easy", Easy) == (easy.status, type(record))
    assert easy.count == pytest.approx(np.rint(easy.count), abs=1e-9)
    assert N == sum(record.guess) or abs(N - sum(record.guess)) <= 4
    data = PrivateData(COUNTS, DOMAIN)
    spent_out = opened(data=data, threshold=1e-5, hard_answers=1)
    for index in range(24):
        spent_out.answer(marginal("a", where=ic.where(b=index % 3, c=index % 2, a=index % 4)))
    assert 0 == spent_out.statistics().hard_left
    reads = data.reads
    untested = spent_out.answer(marginal("b", "c"))

    assert "untested" == untested.status
    assert 0 < untested.error_bound < 0.01  # of the noise of the first tables: which hold these attributes
    assert reads == data.reads
    assert np.isfinite(untested.value).all()


def test_an_exhausted_session_may_refuse_tables_too():
    session = opened(threshold=1e-5, hard_answers=1, exhausted="raise")
    asked = [marginal("a", where=ic.where(a=i % 4, b=i % 3, c=i % 2)) for i in range(24)]
    with pytest.raises(SessionExhaustedError):
        session.answer_many(asked)

    assert 0 == session.statistics().hard_left


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"delta": 0.0, "release": "answer"}, r"session\.group_by\(\['a'\]\) or GROUP BY in SQL"),
        (
            {"delta": 0.0, "release": "answer", "sparse": "exponential"},
            "or open a session with delta above 0",
        ),
    ],
)
def test_a_session_without_a_share_for_tables_refuses_them_before_it_answers_anything(settings, text):
    session = opened(**settings)
    with pytest.raises(InvalidQueryError, match=text):
        session.answer_many([ic.where(a=1), marginal("a")])

    assert (0, ()) == (session.statistics().asked, session.transcript)


def test_a_table_of_a_hypothesis_without_blocks_is_refused_before_anything_is_answered():
    class Blind:
        """A hypothesis of a plug-in."""

        def __init__(self, inner):
            self.domain, self.supports = inner.domain, inner.supports
            self.evaluate, self.evaluate_many = inner.evaluate, inner.evaluate_many

    domain = ic.Domain.of(a=4)
    session = ic.OnlineIC(
        PrivateData(np.array([9_000, 1_000, 0, 0]), domain),
        ic.Budget(10.0, 1e-6),
        release="answer",
        sparse="gumbel",
        hard_answers=2,
        threshold=0.5,
        update=Still(Blind(ic.Histogram(domain))),
        noise=SimulatedNoise(1),
    )
    with pytest.raises(InvalidQueryError, match="a hypothesis with blocks"):
        session.answer_many([ic.where(a=1), marginal("a")])

    assert 0 == session.statistics().asked


def test_the_price_of_a_table_is_that_of_one_partition_whatever_its_size():
    session = opened(threshold=1e-5, hard_answers=8, sparse="gumbel", release="answer")
    charges = []
    for table in (marginal("a"), marginal("a", "b", "c"), marginal("c", where=ic.where(a=0))):
        answer = session.answer(table)
        charges.append(session.transcript[-1].charge.amount)

        assert answer.hard
        assert isinstance(session.transcript[-1], Hard)
    assert 1 == len(set(charges))
    assert charges[0] == session.plan.sparse.price(marginal("a").bind(DOMAIN).partition).amount
