"""A ledger file whose plan is not that of its budget and its table is refused, whoever wrote it."""

import json

import numpy as np
import pytest

import onlineic as ic
from onlineic.errors import LedgerCorruptError, LedgerMismatchError
from onlineic.ledger.kinds import account_to_json
from onlineic.ledger.settings import settings_to_json
from onlineic.plan import session_plan
from onlineic.plan.defaults import RULES
from onlineic.session.durable import KNOWN, check_prior, planned, prior_digest

DOMAIN = ic.Domain.of(a=12, b=5, c=4)
N = 16_000
BUDGETS = {"gumbel": ic.Budget(1.0, 1e-9), "pure": ic.Budget(1.0)}


def beginning(name="gumbel"):
    """The parts of a first line that tell of a plan."""
    budget = BUDGETS[name]
    plan = session_plan(DOMAIN, N, budget)
    settings = {"budget": settings_to_json(budget, KNOWN), "rows_per_person": None, "prior": None}
    told = {"rules": RULES, "n": N, "plan": settings_to_json(plan, KNOWN), "settings": settings}
    return {**json.loads(json.dumps(told)), "domain": json.loads(DOMAIN.to_json())}


def test_the_plan_of_a_line_as_it_was_written_comes_back():
    for name, budget in BUDGETS.items():
        assert planned(beginning(name), DOMAIN) == session_plan(DOMAIN, N, budget)


def less_epsilon(line):
    line["settings"]["budget"]["fields"]["epsilon"] = 0.999


def less_delta(line):
    line["settings"]["budget"]["fields"]["delta"] = 0.999e-9


def other_rows(line):
    line["n"] = N + 1


def several_rows(line):
    line["settings"]["rows_per_person"] = 2


@pytest.mark.parametrize("forge", [less_epsilon, less_delta, other_rows, several_rows])
def test_a_plan_that_spends_more_than_the_budget_beside_it_or_is_of_another_table_is_refused(forge):
    line = beginning()
    forge(line)
    with pytest.raises(LedgerCorruptError, match="must hold a plan for n="):
        planned(line, DOMAIN)


OTHER = {"class": "AddRemove", "fields": {}}  # of whom a table moves one block, and costs half


def of_others(fields):
    fields["neighbours"] = OTHER


def settled(line):
    return line["plan"]["fields"]["purchases"]["fields"]["first"]["fields"]


def at_an_order_of_its_own(line):
    settled(line)["charge"]["fields"]["order"] = {"fraction": "3/2"}


FORGED = {
    "mechanism and tables": lambda line: [
        of_others(fields) for fields in (line["plan"]["fields"]["sparse"]["fields"], settled(line))
    ],
    "tables": lambda line: of_others(settled(line)),
    "order": at_an_order_of_its_own,
}


@pytest.mark.parametrize("rules", [RULES, "others"])
@pytest.mark.parametrize("forge", FORGED.values(), ids=FORGED)
def test_a_plan_that_is_priced_for_other_neighbours_or_another_account_than_the_budget_is_refused(
    forge, rules
):
    account = session_plan(DOMAIN, N, BUDGETS["gumbel"]).sparse.account()
    line = {**beginning(), "rules": rules, "account": account_to_json(account)}
    planned(line, DOMAIN)
    forge(line)
    with pytest.raises(LedgerCorruptError, match="must hold a plan"):
        planned(line, DOMAIN)


FIELDS = ["purchases", "hit_price", "next_share"]


@pytest.mark.parametrize("field", FIELDS)
def test_a_plan_with_something_else_in_the_place_of_tables_or_a_price_is_refused(field):
    line = beginning()
    line["plan"]["fields"][field] = line["settings"]["budget"]
    with pytest.raises(LedgerCorruptError):
        planned(line, DOMAIN)


def test_purchases_with_something_else_in_the_place_of_tables_are_refused():
    line = beginning()
    line["plan"]["fields"]["purchases"]["fields"]["first"] = line["settings"]["budget"]
    with pytest.raises(LedgerCorruptError):
        planned(line, DOMAIN)


@pytest.mark.parametrize("share", [{"fraction": "-1"}, {"fraction": "1e30"}, "much", None])
def test_what_is_kept_for_tables_is_a_share_of_the_account(share):
    line = beginning()
    line["plan"]["fields"]["purchases"]["fields"]["share"] = share
    with pytest.raises(LedgerCorruptError):
        planned(line, DOMAIN).spending.bought  # noqa: B018  it is worked out when it is asked for


def test_another_public_start_than_that_of_the_file_is_refused():
    given = ic.Histogram(DOMAIN, np.arange(1.0, DOMAIN.size + 1))
    line = beginning()
    line["settings"]["prior"] = prior_digest(given)

    check_prior(line, given)
    for other in (None, ic.Histogram(DOMAIN)):
        with pytest.raises(LedgerMismatchError, match="prior must be the one with digest"):
            check_prior(line, other)
