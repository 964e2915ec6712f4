"""One object holds the settings of a session, and means what the keywords mean."""

import attrs
import numpy as np
import pytest

import onlineic as ic
from onlineic.accounting import Budget
from onlineic.errors import InvalidParameterError
from onlineic.ledger import read
from onlineic.noise import SimulatedNoise
from onlineic.plan import DemandPurchases, Settings, session_plan
from support.ledgers import quick_folder

DOMAIN = ic.Domain.of(a=4, b=3)
COUNTS = np.arange(1, 13) * 20
WHOLE = Budget(1.0, 1e-6)
CHOSEN = {
    "rows_per_person": 2, "max_queries": 500, "beta": 0.1, "hard_answers": 7, "threshold": 0.02,
    "sparse": "gumbel", "release": "answer", "exhausted": "raise",
    "update": ic.MultiplicativeWeights(rate=0.1),
}  # fmt: skip


def table():
    return ic.PrivateData(COUNTS, DOMAIN)


def record(*given, **keywords):
    session = ic.OnlineIC(table(), *given, noise=SimulatedNoise(3), **keywords)
    answers = [session.answer(ic.where(a=code, b=code % 3)) for code in range(4)]
    return session.plan, [(one.value, one.status, one.error_bound) for one in answers]


@pytest.mark.filterwarnings("ignore::onlineic.errors.VacuousPromiseWarning")  # of so small a table
@pytest.mark.parametrize(
    "keywords", [{}, CHOSEN, {"certify": 0.4}, {"questions": 5}, {"purchases": DemandPurchases()}]
)
def test_settings_and_keywords_make_the_same_session(keywords):
    assert record(WHOLE, **keywords) == record(Settings(WHOLE, **keywords))


def test_settings_and_keywords_make_the_same_plan_and_forecast():
    told = [("a", "b"), "a"]
    settings = Settings(WHOLE, max_queries=40, questions=told)

    by_name = session_plan(DOMAIN, 900, WHOLE, max_queries=40, questions=told)

    assert by_name == session_plan(DOMAIN, 900, settings)
    assert ic.forecast(DOMAIN, 900, settings) == ic.forecast(DOMAIN, 900, WHOLE, 40, told)


def test_a_forecast_for_persons_spends_what_one_row_may():
    alone, of_ten = (ic.forecast(DOMAIN, 900, Settings(WHOLE, rows_per_person=rows)) for rows in (1, 10))

    assert of_ten.engines[0].rms > 9 * alone.engines[0].rms


@pytest.mark.parametrize(
    "call",
    [
        lambda: ic.OnlineIC(table(), Settings(WHOLE), max_queries=3),
        lambda: ic.forecast(DOMAIN, 900, Settings(WHOLE), 3),
        lambda: session_plan(DOMAIN, 900, Settings(WHOLE), beta=0.1),
    ],
    ids=["session", "forecast", "plan"],
)
def test_settings_beside_keywords_are_refused(call):
    with pytest.raises(
        InvalidParameterError, match="settings must come as Settings or as keywords, got both"
    ):
        call()


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"exhausted": "stop"}, "exhausted must be 'untested' or 'raise'"),
        ({"certify": 0.1, "threshold": 0.1}, "certify must be None with hard_answers or threshold"),
        ({"questions": "dense"}, "questions must be a list"),
        ({"beta": 1.0}, "beta must be"),
        ({"rows_per_person": 0}, "rows_per_person must be"),
        ({"update": ic.MultiplicativeWeights}, "update must be an UpdateRule"),
        ({"restarts": -1}, "restarts must be"),
    ],
)
def test_a_setting_out_of_range_is_refused_by_name(keywords, message):
    with pytest.raises(InvalidParameterError, match=message):
        Settings(WHOLE, **keywords)


def test_settings_are_frozen_and_changed_by_a_copy():
    settings = Settings(WHOLE)
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        settings.beta = 0.5

    assert 0.5 == attrs.evolve(settings, beta=0.5).beta


def test_a_file_that_was_opened_with_settings_goes_on_with_keywords():
    with quick_folder() as folder:
        path = folder / "one.db"
        with ic.OnlineIC(table(), Settings(WHOLE, restarts=2), ledger=path, table="t") as session:
            first = session.answer(ic.where(a=1))
        with ic.OnlineIC(table(), WHOLE, restarts=2, ledger=path, table="t") as again:
            repeated = again.answer(ic.where(a=1))
        held = read(path).lines[0]["settings"]

    assert (first.value, "repeat") == (repeated.value, repeated.status)
    assert 2 == held["restarts"]
    assert {"budget", "beta"} <= set(held)
    assert not {"kinds", "questions"} & set(held)


def test_a_subclass_of_settings_is_no_settings():
    """It could plan one budget and name another to the table."""
    other = type("Other", (Settings,), {"of_row": property(lambda self: Budget(10.0))})(Budget(0.01))
    data = table()
    with pytest.raises(InvalidParameterError, match="budget must be a Budget, got a Other"):
        ic.OnlineIC(data, other)

    assert [] == list(data.budgets)
