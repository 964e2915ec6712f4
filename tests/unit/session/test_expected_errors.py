"""What an answer says that it is expected to err by: by facts of when it was told, whenever that is read."""

import json
import math
import pickle
from fractions import Fraction

import attrs
import numpy as np
import pytest

import onlineic as ic
from onlineic import between, marginal, where
from onlineic.cli import main
from onlineic.data import PrivateData
from onlineic.interactions import Predictor
from onlineic.ledger import BoughtTables, Hard, Single
from onlineic.noise import SimulatedNoise
from onlineic.plan.demand import DemandPurchases
from onlineic.queries import Queries
from onlineic.questions.means import Numbers, Parts
from onlineic.updates import FittedTables
from support.noise import Silent

DOMAIN = ic.Domain.of(a=range(12), b=["u", "v", "w"], c=range(6))
RNG = np.random.default_rng(1)
COUNTS = RNG.multinomial(20_000, RNG.dirichlet(np.full(DOMAIN.size, 0.3))).reshape(DOMAIN.shape)
BUDGET = ic.Budget(1.0, 1e-6)
# a tenth before the first question, and the rest after the fourth
RULE = DemandPurchases(rent=0, after=(1, 4), parts=(Fraction(1, 10), Fraction(1)))
ASKED = where(a=between(3, 8), b="u")
OTHERS = [where(c=code) for code in range(4)]


def opened(budget=BUDGET, data=None, **settings):
    data = PrivateData(COUNTS, DOMAIN) if data is None else data
    return ic.OnlineIC(data, budget, **{"noise": SimulatedNoise(3)} | settings)


def predictors(session):
    """The predictor after each purchase, from none on, by the record."""
    found = [Predictor(session.domain)]
    for record in session.transcript:
        if isinstance(record, BoughtTables):
            found.append(found[-1].after(record.measurements))
    return found


def test_it_is_what_the_predictor_said_when_it_was_told_whenever_it_is_read():
    session = opened(purchases=RULE)
    first = session.answer(ASKED)
    early = session.answer(marginal("a", "b"))
    for other in OTHERS:
        session.answer(other)
    later = session.answer(where(a=2, c=1))

    before, after = predictors(session)[1:]
    assert first.expected_error == before.error(session.bind(ASKED))
    assert after.error(session.bind(ASKED)) < first.expected_error
    assert later.expected_error == after.error(session.bind(where(a=2, c=1)))
    assert (12, 3) == early.expected_error.shape
    assert early.expected_error[4, 1] == pytest.approx(
        before.error(session.bind(where(a=4, b="v"))), rel=1e-9
    )
    assert first.count_expected_error == 20_000 * first.expected_error
    # what was told before says so
    assert first.expected_error == session.told(ASKED).expected_error


def test_what_a_repeat_is_expected_to_err_by_is_that_of_its_answer_though_it_is_measured_anew():
    """A question that was told, and is wished more exactly later, is measured once more."""
    said = []
    for early in (True, False):
        session = opened(within=0.05)
        answers = [session.answer(ASKED), session.answer(ASKED), *session.answer_many([ASKED, OTHERS[0]])]
        read = [answer.expected_error for answer in answers[:3]] if early else []
        finer = session.answer(ASKED, within=0.002)
        said.append(read or [answer.expected_error for answer in answers[:3]])
        assert ["hard", "repeat", "repeat"] == [answer.status for answer in answers[:3]]
        assert "hard" == finer.status
        assert finer.expected_error < said[-1][0] / 5

    assert said[0] == said[1] == [said[0][0]] * 3


def test_what_follows_a_cross_table_that_was_bought_by_itself_rests_on_it_too():
    session = opened(within=0.05)
    table = session.answer(marginal("a", "b"))
    (bought,) = [record for record in session.transcript if isinstance(record, Single)]
    later = session.answer(where(a=3, b="u"))

    assert ("hard", "bought", "easy") == (table.status, table.reason, later.status)
    known = Predictor(session.domain).after(bought.measurements)
    assert later.expected_error <= known.error(session.bind(where(a=3, b="u")))
    assert (later.error_bound, later.estimate) == (
        session.told(where(a=3, b="u")).error_bound, session.told(where(a=3, b="u")).estimate
    )  # fmt: skip
    assert later.estimate is not None


def test_it_is_worked_out_when_it_is_read_and_not_before(monkeypatch):
    session = opened()
    session.answer(ASKED)
    calls = []
    worked_out = Predictor.error
    monkeypatch.setattr(Predictor, "error", lambda *held: calls.append(1) or worked_out(*held))
    answer = session.answer(where(a=2, c=1))
    batch = session.answer_many(Queries.where(DOMAIN, {"a": ([0, 2], [4, 9])}))
    assert [] == calls

    assert answer.expected_error > 0.0
    assert batch[1].expected_error > 0.0
    assert [1, 1] == calls


def test_a_repeat_a_batch_a_pickle_and_a_session_that_goes_on_say_the_same(tmp_path):
    def told(noise=None):
        return opened(noise=noise, ledger=tmp_path / "ledger", table="t")

    session = told()
    first = session.answer(ASKED)
    queries = Queries.bound(DOMAIN, [one.bind(DOMAIN) for one in (ASKED, *OTHERS, ~ASKED, where(), ASKED)])
    batch = session.answer_many(queries)
    errors = [answer.expected_error for answer in batch]

    assert first.expected_error == session.answer(ASKED).expected_error
    assert batch.expected_errors == pytest.approx(errors, rel=1e-9)
    assert batch.to_dict()["expected_error"].tolist() == batch.expected_errors.tolist()
    assert [first.expected_error] * 3 == pytest.approx([errors[0], errors[5], errors[7]], rel=1e-9)
    assert 0.0 == errors[6]  # of all records nothing is unknown
    assert first.expected_error == pickle.loads(pickle.dumps(first)).expected_error
    session.close()
    with told() as again:
        assert first.expected_error == again.answer(ASKED).expected_error
        assert [*errors[1:5]] == pytest.approx(
            [one.expected_error for one in again.answer_many(OTHERS)], rel=1e-9
        )


def test_of_a_measured_number_it_is_that_of_its_noise():
    session = opened(questions=5, certify=0.5)
    found = [session.answer(one) for one in (ASKED, ~where(c=1), where(a=3))]
    record, *_ = [one for one in session.transcript if isinstance(one, Hard)]

    assert {"hard"} == {one.status for one in found}
    assert [record.measurement.scale] * 3 == [one.expected_error for one in found]
    assert record.measurement.scale == session.answer(ASKED).expected_error


def test_a_measured_number_that_is_told_by_the_fit_errs_less_than_either():
    session = opened(purchases=RULE, threshold=1e-4, hard_answers=40)
    found = [session.answer(where(a=a, b=b)) for a in range(12) for b in "uvw"]
    hard = [one for one in found if one.hard]
    records = [one for one in session.transcript if isinstance(one, Hard)]

    assert len(hard) == len(records) > 3
    for answer, record in zip(hard, records, strict=True):
        assert (
            0.0
            < answer.expected_error
            <= record.measurement.scale * math.sqrt(record.measurement.values.size)
        )


@pytest.mark.parametrize("settings", [
    {"certify": 0.3},
    {"purchases": ic.TestsOnly(), "hard_answers": 5, "threshold": 0.5},
])  # fmt: skip
def test_where_nothing_is_known_of_the_hypothesis_nothing_is_said(settings):
    session = opened(**settings)
    answer = session.answer(where(c=1))

    assert ("easy", None, None) == (answer.status, answer.expected_error, answer.count_expected_error)
    assert "usually" not in repr(answer)
    assert answer.to_dict()["expected_error"] is None
    assert [None] == answer.columns()["expected_error"]
    assert answer.usually_and_provably.startswith("provably within")


def test_the_hypothesis_of_the_textbook_says_nothing_and_its_measured_numbers_their_noise():
    session = ic.OnlineIC.textbook(
        PrivateData(50 * COUNTS, DOMAIN), epsilon=1.0, delta=1e-6, max_queries=100, noise=SimulatedNoise(1)
    )
    found = [session.answer(where(b=b, c=c)) for b in "uvw" for c in range(6)]
    records = [one for one in session.transcript if isinstance(one, Hard)]

    assert {None} == {one.expected_error for one in found if not one.hard}
    assert [one.expected_error for one in found if one.hard] == [one.measurement.scale for one in records]


def test_an_untested_answer_is_expected_to_err_as_the_fit_does():
    session = opened(purchases=RULE, threshold=1e-4, hard_answers=1)
    found = [session.answer(where(a=a, b=b)) for a in range(12) for b in "uvw"]
    untested = [one for one in found if one.status == "untested"]

    assert untested
    assert untested[-1].expected_error == predictors(session)[-1].error(untested[-1].query)


def test_an_answer_whose_test_was_passed_errs_by_no_more_than_the_test_finds():
    """Of a chain pairs were bought: triples are believed to depend on each other, which each test refutes."""
    domain, (a, b, c) = ic.Domain.of(dict.fromkeys("abc", 16)), np.indices((16,) * 3)
    counts = 5000 * (1 + 9 * (a == b)) * (1 + 9 * (b == c))
    pairs = attrs.evolve(RULE, announced=((0, 1), (0, 2), (1, 2)))
    session = opened(data=PrivateData(counts, domain), purchases=pairs)
    session.answer(where(a=1, b=1))
    asked = [where(a=code, b=2, c=5 - code) for code in (0, 1)]
    foretold = [session.explain(one).expected for one in asked]
    found = [session.answer(one) for one in asked]
    batch = session.answer_many(Queries.bound(domain, [one.bind(domain) for one in asked]))

    for one, expected in zip(found, foretold, strict=True):
        by_tables = predictors(session)[1].error(one.query)
        assert "easy" == one.status
        assert 0.0 < one.expected_error <= one.error_bound / math.sqrt(3) < by_tables / 2
        assert expected == pytest.approx(one.expected_error, rel=1e-9)
    assert batch.expected_errors == pytest.approx([one.expected_error for one in batch], rel=1e-9)
    assert batch.expected_errors == pytest.approx([one.expected_error for one in found], rel=1e-9)


def test_a_summary_says_what_its_answers_are_expected_to_err_by():
    session = opened(purchases=RULE)
    assert session.summary().expected is None
    found = [session.answer(one) for one in (ASKED, *OTHERS, marginal("a", "c"))]

    squares = [np.mean(np.square(one.expected_error)) for one in found]
    assert session.summary().expected == pytest.approx(math.sqrt(np.mean(squares)), rel=1e-9)
    numbers = opened(questions=3)
    assert numbers.answer(ASKED).expected_error == numbers.summary().expected


def test_what_no_record_can_change_is_exact_and_a_cell_that_is_left_out():
    session = opened()
    session.answer(ASKED)

    assert 0.0 == session.answer(where()).expected_error
    table = session.answer(marginal("a", where=where(a=between(0, 4))))
    assert (table.expected_error[5:] == 0.0).all()
    assert (table.expected_error[:5] > 0.0).all()
    assert table.to_dict()["expected_error"] == table.expected_error.tolist()
    assert table.columns()["expected_error"] == table.expected_error.tolist()


def test_where_n_is_private_its_noise_counts_too():
    rows = {"a": RNG.integers(0, 12, 4000), "b": RNG.integers(0, 2, 4000)}
    domain = ic.Domain.of(a=range(12), b=2)
    data = PrivateData.from_records(rows, domain, neighbours="add-remove")
    session = opened(data=data)
    all_of_them, some = session.answer(where()), session.answer(where(a=between(0, 8)))

    assert all_of_them.count_expected_error == pytest.approx(28.3, rel=0.01)  # sqrt(2) at epsilon/20
    by_tables = predictors(session)[-1].error(some.query)
    assert some.expected_error == pytest.approx(
        math.hypot(by_tables, some.value * all_of_them.expected_error), rel=1e-9
    )


def test_it_is_near_the_error_of_persons_at_delta_0_of_weights_and_of_long_attributes():
    people = {"id": np.arange(12_000) // 3, "a": RNG.integers(0, 12, 12_000), "b": RNG.integers(0, 3, 12_000)}
    of_persons = PrivateData.from_records(people, ic.Domain.of(a=12, b=3), unit=ic.Unit("id"))
    long = {"t": RNG.integers(0, 10**8, 20_000), "k": RNG.integers(0, 4, 20_000)}
    of_long = PrivateData.from_records(long, ic.Domain.of(t=range(10**8), k=4))
    weighed = ic.rescaled(a=np.arange(12.0)).expression
    joint = ic.dense(RNG.random(DOMAIN.shape))
    cases = [
        (opened(data=of_persons), where(a=between(2, 7))),
        (opened(ic.Budget(1.0)), ASKED),
        (opened(), weighed),
        (opened(), joint),
        (opened(data=of_long), where(t=between(10**7, 6 * 10**7), k=1)),
        (opened(data=of_long), marginal("k")),
    ]
    for session, asked in cases:
        answer = session.answer(asked)
        error = np.max(answer.count_expected_error)
        assert 1.0 < error < 0.05 * session.n
        assert "usually within" in repr(answer)


def test_of_so_many_attributes_that_nothing_is_told_apart_nothing_is_said():
    domain = ic.Domain.of({f"x{place}": 2 for place in range(57)})  # 1.4e17 cells
    rows = {name: RNG.integers(0, 2, 2000) for name in domain.names}
    session = opened(data=PrivateData.from_records(rows, domain), purchases=DemandPurchases(rent=0))
    two = session.answer(where(x1=1, x5=1))
    many = session.answer(where({f"x{place}": 1 for place in range(20)}))

    assert 0.0 < two.expected_error < 0.2
    assert many.expected_error is None


def test_tables_that_the_hypothesis_did_not_learn_make_no_error_smaller(monkeypatch):
    session = opened(purchases=RULE)
    before = session.answer(ASKED).expected_error
    with monkeypatch.context() as patched:
        patched.setattr(FittedTables, "update", lambda *_: 1 / 0)
        with pytest.warns(ic.errors.UpdateFailedWarning):
            session.answer_many(OTHERS)

    last, known = session.answer(where(a=between(3, 8), b="v")), predictors(session)
    assert len(known) == 3
    assert before == pytest.approx(last.expected_error, rel=0.01)
    assert known[1].error(last.query) == pytest.approx(last.expected_error, rel=1e-9)
    assert known[-1].error(last.query) < last.expected_error


def test_a_range_of_periods_errs_by_its_periods_together():
    held = ic.Periods(None, DOMAIN, BUDGET, levels=("month",), noise=SimulatedNoise(2))
    for label in ("2026-01", "2026-02"):
        held.add(label, PrivateData(COUNTS, DOMAIN))
    both = held.over("2026-01", "2026-02")
    answer, table = both.answer(where(c=1)), both.answer(marginal("c"))
    alone = [held.over(label, label) for label in ("2026-01", "2026-02")]

    errors = [one.answer(where(c=1)).count_expected_error for one in alone]
    assert answer.count_expected_error == pytest.approx(
        sum(errors), rel=1e-6
    )  # as if alike: fits hide the same
    assert (6,) == table.expected_error.shape
    assert both.mean("a").expected_error > 0.0


def test_means_sums_and_variances_err_to_first_order_by_their_parts():
    session = opened()
    mean, total = session.mean("a", where(b="u")), session.sum("a", where(b="u"))
    part, rest = mean.answers
    share, count = part.value / (part.value + rest.value), part.value + rest.value
    errors = [one.expected_error for one in (part, rest)]

    expected = 11 * math.hypot(errors[0] * (1 - share), errors[1] * share) / count
    assert mean.expected_error == pytest.approx(expected, rel=1e-6)
    assert total.expected_error == pytest.approx(20_000 * 11 * errors[0], rel=1e-6)
    assert session.mean("a").expected_error == pytest.approx(
        11 * session.mean("a").answers[0].expected_error, rel=1e-9
    )
    assert 0.0 < session.variance("a", where(b="u")).expected_error < 5.0
    assert "usually within" in repr(mean)
    assert "(1.96 expected errors), provably within" in mean._repr_html_()
    assert ", each with 95 %" in session.mean("a")._repr_html_()


def test_groups_quantiles_and_statements_say_it_beside_each_bound():
    pytest.importorskip("sqlglot", reason="needs the extra sql")
    session = opened()
    counts, means = session.group_by("b"), session.group_by("b", aggregate="mean", of="a")
    statement = session.sql("SELECT b, COUNT(*) AS n, AVG(a) AS m FROM t GROUP BY b")
    middle, rising = session.median("a"), session.cdf("a", where(b="u"))

    assert counts.expected_errors.tolist() == counts.answers[0].count_expected_error.tolist()
    assert counts.expected_errors.tolist() == statement.expected_errors[:, 0].tolist()
    assert means.expected_errors.tolist() == statement.expected_errors[:, 1].tolist()
    assert means.expected_errors[0] == session.mean("a", where(b="u")).expected_error
    assert statement.to_dict()["n expected_error"] == counts.expected_errors.tolist()
    assert counts.to_dict()["expected_error"] == counts.expected_errors.tolist()
    for found in (counts, means, statement, middle, rising):
        for shown in (repr(found), found._repr_html_()):
            assert "usually within" in shown
    estimates = session.group_by("b", unbiased=True)
    assert estimates.expected_errors.tolist() == estimates.standard_errors.tolist()
    assert 0.0 < middle.expected_rank_error < middle.rank_error
    assert rising.expected_errors[-1] == 0.0
    assert (rising.expected_errors[:-1] > 0.0).all()
    assert rising.quantile(0.5).expected_rank_error > 0.0


def few_of():
    """Three of 10,000 records, in a session that knows some 30 records off."""
    domain = ic.Domain.of(sex=["F", "M"], age=range(17, 37))
    counts = np.zeros(domain.shape, np.int64)
    counts[0] = 500
    counts[1, 5:8] = 10
    return opened(data=PrivateData(counts, domain))


def test_a_mean_over_few_records_is_told_without_a_bound_and_marked():
    pytest.importorskip("sqlglot", reason="needs the extra sql")
    session = few_of()
    found = session.mean("age", where(sex="M"))

    assert (True, math.inf) == (found.few_records, found.error_bound)
    assert 17 <= found.value <= 36
    assert 0.0 < found.expected_error <= 19
    assert "no bound, usually within" in repr(found)
    assert "(few records)" in repr(found)
    assert "few records" in found._repr_html_()
    told = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert (None, True) == (told["error_bound"], told["few_records"])
    assert told["expected_error"] == found.expected_error
    statement = session.sql("SELECT sex, AVG(age) AS m FROM t GROUP BY sex")
    assert [False, True] == statement.to_dict()["m few_records"]
    assert "(few records)" in repr(statement)
    assert session.explain(lambda to: to.mean("age", where(sex="M"))).bound_derived == math.inf


def test_a_mean_of_untested_answers_without_a_bound_is_told_where_its_error_is_expected():
    numbers = Numbers.of(DOMAIN, "a", where(b="u"))
    for aggregate, values, errors in (
        ("mean", [0.1, 0.2], [0.01, 0.02]),
        ("variance", [0.1, 0.2, 0.05], [0.01] * 3),
    ):
        bounds = [math.inf] * len(values)
        made = numbers.worked_out(aggregate, 1000, Parts(values, bounds, errors))
        unknown = numbers.worked_out(aggregate, 1000, Parts(values, bounds))

        assert (math.inf, False) == (made.bound, made.few)
        assert 0.0 < made.value < 11**2 / 4
        assert 0.0 < made.expected < 11.0
        assert math.isnan(unknown.value)


def test_a_mean_over_nobody_as_far_as_is_known_is_refused():
    domain = ic.Domain.of(sex=["F", "M"], age=range(3))
    counts = np.zeros(domain.shape, np.int64)
    counts[0] = 5000
    session = opened(data=PrivateData(counts, domain), noise=Silent(), questions=20)
    with pytest.raises(ic.errors.TooFewRecordsError):
        session.mean("age", where(sex="M"))
    groups = session.group_by("sex", aggregate="mean", of="age")
    assert [False, True] == np.isnan(groups.values).tolist()
    assert "too few records" in repr(groups)


def test_texts_say_what_an_error_usually_and_provably_is_within(tmp_path, capsys):
    session = opened()
    answer = session.answer(ASKED)
    usual = f"usually within {ic.display.text.upward(1.96 * answer.count_expected_error)}"

    assert usual in repr(answer)
    assert f"{usual} (1.96 expected errors), provably within" in answer.usually_and_provably
    assert answer.usually_and_provably in answer._repr_html_()
    table = session.answer(marginal("b"))
    assert "usually within" in str(table)
    assert "each usually within" in table._repr_html_()
    assert usual in session.summary().to_markdown()
    assert usual in str(session.summary())
    assert "usually within" in repr(session.explain(where(a=5)))
    (tmp_path / "t.csv").write_text("k\n" + "u\nv\n" * 500)
    (tmp_path / "d.json").write_text(ic.Domain.of(k=["u", "v"]).to_json())
    (tmp_path / "q").write_text('{"k": "u"}\n')
    said = ["--csv", tmp_path / "t.csv", "--domain", tmp_path / "d.json", "--epsilon", "1"]
    for form in ("text", "json", "csv"):
        assert 0 == main(["ask", *map(str, said), "--format", form, str(tmp_path / "q")])
    text, told, head, row = capsys.readouterr().out.splitlines()
    assert "usually within" in text
    assert json.loads(told)["count_expected_error"] > 0.0
    assert head.endswith(",bias,expected_error,cost")
    assert float(row.split(",")[-2]) > 0.0
