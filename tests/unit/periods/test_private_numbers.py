"""A table that grows whose numbers of records are private: released, paid, added up with their error."""

import json
import subprocess
import sys
import textwrap

import attrs
import numpy as np
import pytest

import onlineic as ic
from onlineic import offline
from onlineic.accounting import ADD_REMOVE
from onlineic.audit import verified
from onlineic.cli import main
from onlineic.errors import (
    BudgetError,
    BudgetExceededError,
    InfeasibleAccuracyError,
    InvalidInputError,
    InvalidParameterError,
    LedgerCorruptError,
    LedgerMismatchError,
    LedgerWriteError,
)
from onlineic.ledger import BlockBegun, CountPaid, NodeOpened, read
from onlineic.noise import SimulatedNoise
from onlineic.periods import Periods, Persons, ServedPeriods, book_of
from onlineic.periods import periods as module
from onlineic.session.durable import counted_of
from support.events import FOR_EVER
from support.served import served

pytestmark = [
    pytest.mark.filterwarnings("ignore::onlineic.errors.WideBoundWarning"),
    pytest.mark.filterwarnings("ignore::onlineic.errors.VacuousPromiseWarning"),
]
DOMAIN = ic.Domain.of(age=5, sex=["F", "M"], city=4)
BUDGET = ic.Budget(1.0, 1e-9)
LABELS = ("2026-01", "2026-02", "2026-03")
MOST = 10**6
SAID = "and whether it is there; protects in which month a record lies at twice the epsilon"


def counts_of(seed, n):
    draw = np.random.default_rng(seed)
    return draw.multinomial(n, draw.dirichlet(np.full(DOMAIN.size, 0.5)))


COUNTS = {
    label: counts_of(seed, n) for seed, (label, n) in enumerate(zip(LABELS, (3_000, 10, 0), strict=True))
}


def data_of(label, **options):
    return ic.PrivateData(COUNTS[label], DOMAIN, **{"neighbours": "add-remove", "n_at_most": MOST, **options})


def opened(path=None, budget=BUDGET, **options):
    wish = {"levels": ("month", "quarter"), "max_queries": 100, "neighbours": "add-remove", "n_at_most": MOST}
    files = {} if path is None else {"table": "t", "load": data_of}
    return Periods(path, DOMAIN, budget, **{**wish, **files, **options})


def grown(seed=1, **options):
    held = opened(noise=SimulatedNoise(seed), **options)
    for label in LABELS:
        held.add(label, data_of(label))
    return held


def records(labels):
    return sum(int(COUNTS[label].sum()) for label in labels)


def women(labels):
    return sum(int(COUNTS[label].reshape(DOMAIN.shape)[:, 0].sum()) for label in labels)


def test_what_is_protected_is_said_and_no_exact_number_is_told():
    held = grown()

    assert SAID in repr(held)
    assert held.n_at_most == MOST
    for label in LABELS:
        assert held.blocks[label] == held[label].n
        assert abs(held[label].n - records([label])) <= held[label].n_bound
    assert "3000" not in repr(held.book)


@pytest.mark.parametrize("budget", [BUDGET, ic.Budget(1.0)])
@pytest.mark.parametrize("persons", [None, Persons(periods=3)])
def test_a_block_pays_for_its_number_and_for_its_session_no_more_than_its_share(budget, persons):
    levels = ("month",) if persons else ("month", "quarter")
    held = grown(budget=budget, persons=persons, levels=levels)
    whole, counting = held.book.account.whole, held.book.counting
    rows = 1 if persons is None else 3
    share = whole.capacity / (rows * len(levels))

    for label in LABELS:
        together = counting.charge.amount + held.book.nodes[label].charge.amount
        assert 0.999 * share < together <= share
        assert ADD_REMOVE == held[label].plan.sparse.neighbours
        assert held[label].account.capacity <= held.book.nodes[label].charge.amount
        assert held.book.account.left(label) < (1e-6 if persons else 0.51)
    assert float(counting.scale) * counting.epsilon >= 1.0
    assert 0.04999 * share < counting.charge.amount <= share / 20
    if persons is None:
        held.close("2026-Q1")
        assert all(held.book.account.left(label) < 1e-6 for label in LABELS)
        quarter = held["2026-Q1"]
        assert quarter.n == sum(held.book.blocks[label].drawn for label in LABELS)
        assert held[LABELS[0]].n_bound < quarter.n_bound < 3 * held[LABELS[0]].n_bound


def test_what_is_asked_of_a_range_carries_the_error_of_the_numbers():
    held = grown()
    over = held.over("2026-01", "2026-02")

    assert 0 < over.n_bound
    assert abs(over.n - records(LABELS[:2])) <= over.n_bound
    answer = over.answer(ic.where(sex="F"))
    assert (over.n, over.n_bound) == (answer.n, answer.n_bound)
    assert abs(answer.count - women(LABELS[:2])) <= answer.count_bound
    assert abs(answer.value - women(LABELS[:2]) / records(LABELS[:2])) <= answer.fraction_bound
    month = over.answer(ic.where(month="2026-01"))
    assert held.blocks["2026-01"] == month.count
    assert abs(month.count - 3_000) <= month.count_bound
    assert 0 < month.error_bound
    series = held.group_by("month")
    np.testing.assert_allclose(series.values, [held.blocks[label] for label in LABELS])
    assert (np.abs(series.values - [3_000, 10, 0]) <= series.error_bounds).all()
    assert 0 < series.error_bounds.min()
    rows = held.sql("SELECT month, COUNT(*) AS n FROM t WHERE sex = 'F' GROUP BY month").to_dict()
    assert abs(rows["n"][0] - women(LABELS[:1])) < 500
    held.close("2026-Q1")
    assert ("2026-Q1",) == held.over().nodes
    assert abs(held.over().answer(ic.where(sex="F")).count - women(LABELS)) < 500
    assert 1.0 < held.over().mean("age").value < 4.0


def test_bounds_hold_as_often_as_is_said():
    queries = [ic.where(age=age) for age in range(5)] + [~ic.where(age=2, sex="F"), ic.where(month="2026-01")]
    queries += [ic.where(month="2026-01") | ic.where(sex="F")]
    missed = 0
    for seed in range(8):
        held = grown(seed)
        over = held.over()
        answers = over.answer_many(queries)
        joint = over.joint_bounds(queries, answers)
        cells = sum(COUNTS[label].reshape(DOMAIN.shape) for label in LABELS)
        first = COUNTS[LABELS[0]].reshape(DOMAIN.shape)
        truths = [cells[age].sum() for age in range(5)]
        truths += [cells.sum() - cells[2, 0].sum(), first.sum()]
        truths += [first.sum() + (cells - first)[:, 0].sum()]
        for answer, truth, together in zip(answers, truths, joint, strict=True):
            missed += abs(answer.count - truth) > min(answer.count_bound, over.n * together)
    assert 0 == missed


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"neighbours": "none"}, "neighbours must be"),
        ({"n_at_most": 0}, "n_at_most must be"),
        ({"n_at_most": 2**31}, "n_at_most must be"),
        ({"neighbours": "replace-one"}, "n_at_most must be left out where numbers of records are public"),
        ({"persons": Persons(periods=2)}, "levels must be that of the blocks alone for persons"),
        ({"budget": ic.Budget(1.0, 1e-9, neighbours=ADD_REMOVE)}, "without an order or neighbours"),
    ],
)
def test_bad_settings_are_refused_by_name(options, match):
    with pytest.raises(InvalidParameterError, match=match):
        opened(**options)


@pytest.mark.parametrize("options", [{"neighbours": "replace-one", "n_at_most": 2**31}, {"n_at_most": 10**5}])
def test_tables_of_other_neighbours_are_refused_and_cost_nothing(options):
    held = opened(noise=SimulatedNoise(1))

    with pytest.raises(
        InvalidParameterError, match='loaded with neighbours="add-remove" and n_at_most=10000'
    ):
        held.add(LABELS[0], data_of(LABELS[0], **options))
    assert {} == dict(held.book.account.blocks)


def test_many_periods_of_a_person_leave_their_part_for_the_number():
    held = grown(persons=Persons(periods=100), levels=("month",))

    share = held.book.account.whole.capacity / 100
    assert 0.04999 * share < held.book.counting.charge.amount <= share / 20
    with pytest.raises(InvalidParameterError, match="shares must leave"):
        opened(shares=(1e-6, 0.5), budget=ic.Budget(1e-6, 1e-9))


def test_what_cannot_be_planned_of_the_most_is_refused_before_a_number_is_paid():
    held = opened(noise=SimulatedNoise(1), budget=ic.Budget(1e-6, 1e-9))

    with pytest.raises(InfeasibleAccuracyError, match="n=1000000"):
        held.add(LABELS[0], data_of(LABELS[0]))
    assert {} == dict(held.book.account.blocks)


def test_a_folder_that_cannot_be_made_is_refused_before_a_number_is_paid(tmp_path):
    (tmp_path / "t.db.nodes").write_text("")
    with opened(tmp_path / "t.db") as held:
        with pytest.raises(LedgerWriteError, match="FileExistsError"):
            held.add(LABELS[0], data_of(LABELS[0]))
        assert {} == dict(held.book.account.blocks)


def test_a_year_of_too_many_records_is_refused_before_the_first_month():
    assert (
        2**32 // 366
        == Periods(
            None, DOMAIN, BUDGET, levels=("day", "year"), neighbours="add-remove", noise=SimulatedNoise(1)
        ).n_at_most
    )


def test_all_goes_on_from_its_files_and_every_file_holds(tmp_path):
    path = tmp_path / "t.db"
    with opened(path) as held:
        for label in LABELS[:2]:
            held.add(label, data_of(label))
        held.add(LABELS[2], None)
        blocks = dict(held.blocks)
        first = held.answer(ic.where(age=1))
    with Periods.resume(path, load=data_of) as held:
        assert (blocks, MOST) == (dict(held.blocks), held.n_at_most)
        assert float(first) == float(held.answer(ic.where(age=1)))
        held.close("2026-Q1")
        number = held["2026-Q1"].n
    with Periods.resume(path, load=data_of) as held:
        assert (number, SAID in held.said) == (held["2026-Q1"].n, True)
        assert held["2026-Q1"].n_bound > held[LABELS[0]].n_bound
    _, book = book_of(read(path))
    for label in book.nodes:
        assert () == verified(read(f"{path}.nodes/{label}.db")).problems
    assert not any('"n":3000' in text for text in _texts(path, book))
    for other in ({"neighbours": "replace-one", "n_at_most": None}, {"n_at_most": MOST - 1}):
        with pytest.raises(LedgerMismatchError, match="n_at_most must be"):
            opened(path, **other)


def _texts(path, book):
    for file in (path, *(f"{path}.nodes/{label}.db" for label in book.nodes)):
        yield from (json.dumps(line, separators=(",", ":")) for line in read(file).lines)


def _crash(*_, **__):
    raise KeyboardInterrupt


@pytest.mark.parametrize("step", ["number_of", "BlockBegun", "OnlineIC", "NodeOpened"])
def test_a_crash_behind_the_payment_pays_for_the_next_number_too(tmp_path, monkeypatch, step):
    path = tmp_path / "t.db"
    held = opened(path)
    monkeypatch.setattr(module, step, _crash)
    with pytest.raises(KeyboardInterrupt):
        held.add(LABELS[0], data_of(LABELS[0]))
    monkeypatch.undo()
    held.release()

    assert ["count"] == [line["kind"] for line in read(path).lines[1:]]
    with opened(path) as held:
        assert {} == dict(held.blocks)
        held.add(LABELS[0], data_of(LABELS[0]))
        twice = 2 * held.book.counting.charge.amount
        together = twice + held.book.nodes[LABELS[0]].charge.amount
        assert 0.49 < together / held.book.account.whole.capacity <= 0.5
        for label in LABELS[1:]:
            held.add(label, data_of(label))
        held.close("2026-Q1")
    kinds = [line["kind"] for line in read(path).lines[1:]]
    assert ["count", "count", "block", "node", "count", "block", "node"] == kinds[:7]


def test_a_block_that_was_counted_until_nothing_is_left_is_refused(monkeypatch):
    held = opened(noise=SimulatedNoise(1))
    monkeypatch.setattr(module, "number_of", _crash)

    def until_refused():
        for crashes in range(30):
            try:
                held.add(LABELS[0], data_of(LABELS[0]))
            except KeyboardInterrupt:
                continue
            except (BudgetError, InvalidInputError):
                return crashes
        return None

    crashes = until_refused()

    assert 15 < crashes <= 20  # each takes a twentieth of the session's share
    assert held.book.account.left(LABELS[0]) >= 0.5  # that of the quarter stays


def test_a_process_that_is_killed_between_the_draw_and_the_file_paid_for_the_number(tmp_path):
    code = f"""
        import os, numpy as np, onlineic as ic
        from onlineic.periods import periods
        domain = ic.Domain.of(age=5, sex=["F", "M"], city=4)
        held = ic.Periods({str(tmp_path / "t.db")!r}, domain, ic.Budget(1.0, 1e-9), max_queries=100,
                          table="t", levels=("month", "quarter"), neighbours="add-remove", n_at_most=10**6)
        periods.OnlineIC = lambda *_, **__: os._exit(9)
        held.add("2026-01", ic.PrivateData(np.full(40, 75), domain, neighbours="add-remove", n_at_most=10**6))
    """
    ran = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], timeout=FOR_EVER)
    assert 9 == ran.returncode

    with opened(tmp_path / "t.db") as held:
        assert 0 < 1 - held.book.account.left(LABELS[0]) < 0.05
        held.add(LABELS[0], data_of(LABELS[0]))
        assert held["2026-01"].answer(ic.where(age=1)).status in ("easy", "hard")


def test_a_root_whose_number_was_not_paid_for_is_refused():
    held, other = grown(), Periods(None, DOMAIN, BUDGET, noise=SimulatedNoise(1))

    for book, record in (
        (held.book, BlockBegun("2026-04", 5, False, 5)),
        (held.book, BlockBegun("2026-04", 5, False)),
        (other.book, BlockBegun("2026-04", 5, False, 5)),
    ):
        with pytest.raises(InvalidParameterError, match="must have a number of records as public as those"):
            book.after(record)
    paid = held.book.after(CountPaid("2026-04", held.book.counting.charge))
    assert 0 == paid.after(BlockBegun("2026-04", 0, False)).number(["2026-04"])
    with pytest.raises(InvalidParameterError, match="label must be that of a new month"):
        held.book.after(CountPaid("2026-03", held.book.counting.charge))
    with pytest.raises(BudgetExceededError):
        paid.after(BlockBegun("2026-04", 1, False, -3)).after(
            NodeOpened(
                "2026-04",
                ("2026-04",),
                "",
                attrs.evolve(held.book.counting.charge, amount=held.book.account.whole.capacity),
            )
        )


def test_dates_show_that_rows_are_of_their_period():
    held = opened(noise=SimulatedNoise(1))
    rows = {"age": [1] * 400, "sex": ["F"] * 400, "city": [2] * 400, "on": ["2026-01-05"] * 400}

    domain = held.loading("2026-01", "on")
    held.add("2026-01", ic.PrivateData.from_records(rows, domain, neighbours="add-remove", n_at_most=MOST))

    assert abs(held.blocks["2026-01"] - 400) <= held["2026-01"].n_bound


def test_a_session_that_is_told_its_number_draws_none(tmp_path):
    data = data_of(LABELS[0])
    counted = offline.count(data, epsilon=0.5)
    with pytest.warns(ic.errors.BudgetsAddWarning):
        session = ic.OnlineIC(data, BUDGET, counted=counted, ledger=tmp_path / "s.db", table="t")
    assert (counted.n, counted.bound) == (session.n, session.n_bound)
    assert session.account.capacity > ic.OnlineIC(data_of(LABELS[0]), BUDGET).account.capacity
    session.answer(ic.where(age=1))
    session.close()
    assert () == verified(read(tmp_path / "s.db")).problems
    with ic.OnlineIC.resume(tmp_path / "s.db", data_of(LABELS[0])) as session:
        assert counted.n == session.n
    with pytest.raises(LedgerMismatchError, match="counted must be"):
        ic.OnlineIC(data_of(LABELS[0]), BUDGET, ledger=tmp_path / "s.db", table="t")
    with pytest.raises(
        InvalidParameterError, match="counted must be None where the number of records is pub"
    ):
        ic.OnlineIC(ic.PrivateData(COUNTS[LABELS[0]], DOMAIN), BUDGET, counted=counted)
    total = data_of(LABELS[0])
    total.draw_on(ic.TableBudget(ic.Budget(1.0, 1e-9, neighbours=ADD_REMOVE)))
    with pytest.raises(InvalidParameterError, match="counted must be None on a total"):
        ic.OnlineIC(total, total.total.share(0.5), counted=counted)


def test_a_number_that_pays_less_than_its_noise_costs_is_no_record_of_a_book():
    held = grown()
    book, paid = held.book, held.book.counting.charge
    half = attrs.evolve(paid, amount=paid.amount / 2)

    assert book.after(CountPaid("2026-04", paid)).account.left("2026-04") < 1
    with pytest.raises(InvalidParameterError, match="must pay for its number of rec"):
        book.after(CountPaid("2026-04", half))
    public = Periods(None, DOMAIN, BUDGET, levels=("month",), noise=SimulatedNoise(1)).book
    with pytest.raises(InvalidParameterError, match="must pay for its number of rec"):
        public.after(CountPaid("2026-01", paid))


def test_a_file_whose_number_is_another_than_was_told_is_refused(tmp_path):
    held = opened(tmp_path / "t.db")
    held.add(LABELS[0], data_of(LABELS[0]))
    held.release()
    beginning = read(tmp_path / "t.db.nodes" / "2026-01.db").beginning
    beginning["settings"]["counted"]["fields"]["n"] += 1

    with pytest.raises(LedgerCorruptError, match="the number of records as it was counted"):
        counted_of(beginning)


def test_it_comes_in_from_the_command_line_and_is_served(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "domain.json").write_text(DOMAIN.to_json())
    for label in LABELS[:2]:
        lines = [f"{label}-03,1,F,2", f"{label}-28,4,M,0"] * 300
        (tmp_path / f"trips-{label}.csv").write_text("\n".join(["on,age,sex,city", *lines]) + "\n")
    first = ["--domain", "domain.json", "--epsilon", "1", "--delta", "1e-9", "--levels", "month,quarter"]
    first += ["--table", "trips", "--max-queries", "100", "--neighbours", "add-remove", "--n-at-most", "5000"]

    assert 0 == main(["periods", "add", "t.db", "2026-01", "trips-2026-01.csv", "--date", "on", *first])
    assert 0 == main(["periods", "add", "t.db", "2026-02", "trips-2026-02.csv", "--date", "on"])
    assert 0 == main(["periods", "add", "t.db", "2026-03"])
    assert 0 == main(["periods", "close", "t.db", "2026-Q1", "--data", "trips-{}.csv"])
    capsys.readouterr()
    assert 0 == main(["periods", "show", "t.db"])
    text = capsys.readouterr().out
    assert 0 == main(["periods", "show", "--json", "t.db"])
    told = json.loads(capsys.readouterr().out)

    assert SAID in text
    assert "month     2026-01, n 600," not in text
    assert " ± " in text
    assert (5000, 3) == (told["n_at_most"], len(told["blocks"]))
    assert 600 != told["blocks"][0]["n"]
    if not pytest.importorskip("starlette"):
        return
    load = _csv
    held = ServedPeriods(Periods.resume("t.db", load=load, durability="all"))
    with (
        served(held, tmp_path, curators=frozenset({"ann"})) as running,
        ic.connect(running.url, running.tokens["ann"]) as far,
    ):
        assert far.n_bound == held.n_bound > 0
        answer = far.over("2026-01", "2026-02").answer({"sex": "F"})
        assert abs(answer.count - 600) <= answer.count_bound
        assert held.view().statistics.counted.n == held.n


def _csv(label):
    return ic.PrivateData.from_csv(f"trips-{label}.csv", DOMAIN, neighbours="add-remove", n_at_most=5000)
