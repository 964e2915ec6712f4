"""Sentences of the documents that hold a number, beside that number: who changes one is told of the other."""

import json
import math
from fractions import Fraction
from pathlib import Path

import pytest

import onlineic as ic
from onlineic import where
from onlineic.datasets import adult5, adult5_domain
from onlineic.ledger import BoughtTables, Single
from onlineic.noise import SimulatedNoise
from onlineic.plan import DemandPurchases
from onlineic.plan.defaults import NEXT_SHARE, USUAL_QUERIES

ROOT = Path(__file__).resolve().parent.parent
N = 48_842


def told(page, *sentences):
    """Assert that a page says all this, wherever its lines break."""
    text = " ".join((ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8").split())

    assert [] == [one for one in sentences if one not in text]


def opened(**more):
    data = ic.PrivateData.from_counts(*adult5(), adult5_domain())
    return ic.OnlineIC(data, ic.Budget(1.0, 1e-9), noise=SimulatedNoise(1), **more)


def test_sixteen_questions_that_come_alone_are_measured():
    rule, session = DemandPurchases(), opened()
    spent = 1 - (1 - rule.single) ** 16
    for age in range(20, 37):
        session.answer(where(age=ic.at_least(age), sex="Female"))
    kinds = [type(record) for record in session.transcript if isinstance(record, Single | BoughtTables)]

    assert Fraction(1, 32) == rule.single
    assert (64, 256, 1024) == rule.after[3:]
    assert spent <= rule.rent < 1 - (1 - rule.single) ** 17
    assert ".36" == f"{float(rule.share * spent):.2f}"[1:]
    assert [Single] * 16 == kinds[:16]
    assert {BoughtTables} == {*kinds[16:]}
    told(
        "which_rule",
        "for 1/32 of what is left; from the seventeenth on tables",
        "at 64, 256 and 1,024 questions",
    )
    told(
        "faq",
        "The first sixteen questions that come alone are measured one by one, for up to .36 of the budget",
    )


def test_measured_answers_hardly_run_out():
    assert Fraction(1, 20) == NEXT_SHARE
    told(
        "faq",
        "each costs at most a twentieth of the budget that is left",
        "`statistics().hard_left` stays near 20",
    )


def test_the_default_plans_for_ten_thousand_answers():
    assert 10_000 == USUAL_QUERIES
    told("bins", "The default plans for 10,000 answers")


def test_how_many_answers_a_question_takes():
    session, rich = opened(), where(income=">50K")
    answers = {
        "mean": session.explain(lambda one: one.mean("age", where(sex="Female"))).answers,
        "rate": session.explain(lambda one: one.share(rich, where(sex="Female"))).answers,
        "means": session.explain(lambda one: one.group_by("race", aggregate="mean", of="age")).answers,
        "counts": session.explain(lambda one: one.group_by("race")).answers,
        "rates": session.explain(lambda one: one.share(rich, by="race")).answers,
    }

    assert answers == {"mean": 2, "rate": 2, "means": 2 * 5, "counts": 1, "rates": 1}
    told("how_much", "a mean or a rate two, means by group two for each group")
    told("bins", "Some take several answers: a mean two, a table one")


def epsilon(within, questions, n=N):
    """What certain answers need."""
    (certain, _) = ic.forecast(adult5_domain(), n, within=within, questions=questions).costs
    return certain.epsilon


def test_what_moves_the_price():
    usual = epsilon(0.01, 20)

    assert 2.0 == pytest.approx(epsilon(0.005, 20) / usual, rel=0.1)
    assert 2.0 == pytest.approx(epsilon(0.01, 80) / usual, rel=0.1)
    assert usual == pytest.approx(epsilon(0.001, 20, 10 * N), rel=0.02)
    told(
        "how_much",
        "half the error needs about twice the epsilon",
        "Four times as many measured numbers need about twice the epsilon",
        "Ten times the records make the same part of them ten times as exact for the same budget",
    )


def rows(name, table=0):
    """Return the cells of a table of results, by engine; replace-one where there are neighbours."""
    parts = (ROOT / "experiments" / "results" / f"{name}.md").read_text(encoding="utf-8").split("\n\n")
    lines = [part for part in parts if part.startswith("|")][table].splitlines()
    columns, _, *cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    found = [dict(zip(columns, row, strict=True)) for row in cells]
    return {row["engine"]: row for row in found if row.get("neighbours", "replace-one") == "replace-one"}


def test_whether_to_count_questions_or_answers():
    whole, kinds, clinic = rows("hour"), rows("hour", 1), rows("rivals")
    over = "error over that of OpenDP, told the ten"
    last = [
        float(clinic["session, told ten"][name]) / float(clinic["OpenDP, told the ten"][name])
        for name in ("diagnosis by sex", "ward by month")
    ]

    assert [f"{ratio:.1f}" for ratio in last] == ["2.6", "7.0"]
    told(
        "how_much",
        f"err by {whole['session, told twenty']['all']} times what noise does",
        f"come last, by {float(kinds['session, told twenty']['tables']):.0f} times",
        f"The twenty err by {whole['session, told its answers']['all']} times, "
        f"the tables by {float(kinds['session, told its answers']['tables']):.1f}",
        f"err by {clinic['session, told 26 answers'][over]} times what OpenDP does",
        "told ten, the last tables by 2.6 to 15 times",
        f"Then the twenty err by {whole['session, told nothing']['all']} times, "
        f"and those of the clinic by {clinic['session, told nothing'][over]}",
    )


def test_many_groups_cost_as_much_as_six_numbers():
    prices = []
    for asked in (lambda one: one.answer(where(age=ic.at_least(30))), lambda one: one.group_by("age")):
        session = opened(within=0.01)
        asked(session)
        prices.append(session.account.spent)

    assert 74 == adult5_domain().shape[0]
    assert 6.0 == pytest.approx(float(prices[1] / prices[0]), rel=0.05)
    told("how_much", "A `group_by` of seventy groups costs as much as six numbers")


def test_other_points_of_what_is_spent_on_numbers():
    path = ROOT / "experiments" / "results" / "frontier.json"
    rows = {row["stream"]: row["points"] for row in json.loads(path.read_text(encoding="utf-8"))["rows"]}

    def over_default(label):
        """Rent and single price -> the error over that of the default, geometric mean over two tables."""
        points = zip(rows[label], rows[f"{label}, of 14"], strict=True)
        errors = {
            (one["rent"], one["single"]): math.sqrt(one["over told noise"] * other["over told noise"])
            for one, other in points
            if one["rent"] is not None
        }
        return {point: error / errors[0.4, 1 / 32] for point, error in errors.items()}

    many, few = over_default("2,000 asked"), over_default("ordinary")
    more, less = [(0.4, 1 / 16), (0.6, 1 / 32), (0.6, 1 / 16)], [(0.0, 1 / 32), (0.2, 1 / 32), (0.2, 1 / 16)]

    assert all(1.1 <= many[point] <= 1.22 and 0.9 <= few[point] <= 1.02 for point in more)
    assert all(1.1 <= few[point] <= 1.36 for point in less)
    told(
        "which_rule",
        "with more of it 2,000 questions, one at a time, err by a tenth to a fifth more",
        "and an hour's ordinary questions hardly less",
        "with less of it the ordinary ones by a tenth to a third more",
    )


def test_a_number_has_about_sixty_four_bins():
    """For ranges of all sizes: from 40 to 100, of a width of 1, 2 or 5 times a power of ten."""
    for high in (1, 3, 7, 100, 350, 50_000, 1_234_567):
        (cells,) = ic.Domain.of(x=ic.number(0, high)).shape  # two to a bin, one at each end

        assert 40 <= cells / 2 <= 100, high
    told("bins", "it takes about 64 bins of a round width: 1, 2 or 5 times a power of ten")
