"""The stamp of the rules in every ledger file: it cannot stay while plans, fits or answers change.

The stamp is a digest of the stored plans below and of the stored transcripts beside them, which other tests
compare with what the package does. `python tests/golden/test_rules.py` writes the plans anew and prints the
stamp, which belongs into `onlineic/plan/defaults.py`.
"""

import hashlib
import json
import sys
import warnings
from fractions import Fraction
from pathlib import Path

import pytest

import onlineic as ic
from onlineic.audit.ledgers import plans_alike
from onlineic.ledger.settings import settings_to_json
from onlineic.plan import session_plan, textbook_plan
from onlineic.plan.announced import Announcement
from onlineic.plan.defaults import RULES
from onlineic.session.durable import KNOWN

FOLDER = Path(__file__).parent
PLANS = FOLDER / "plans.json"
DOMAINS = {
    "one": ic.Domain.of(age=90),
    "small": ic.Domain.of(a=6, b=4, c=["x", "y", "z"]),
    "mixed": ic.Domain.of(age=74, sex=2, region=12, income=30),
    "wide": ic.Domain.of({f"x{number}": 2 for number in range(20)}),
    "listened to": ic.Domain.of({f"x{number}": 12 for number in range(14)}),
}
BUDGETS = {"usual": ic.Budget(1.0, 1e-9), "pure": ic.Budget(1.0), "tiny": ic.Budget(0.05, 1e-9)}
SETTINGS = {
    "default": {},
    "dense": {"questions": Announcement(dense=True)},
    "few": {"questions": 5},
    "few, bounded": {"max_queries": 5},
    "hard": {"hard_answers": 20, "threshold": 0.01},
    "numbers": {"release": "answer", "purchases": ic.TestsOnly()},
    "certified": {"certify": 0.3, "max_queries": 100, "questions": 100},
}


def plans():
    """Return the plan of each combination as a file holds it, or the name of what refuses it."""
    grid = [(domain, budget, "default") for domain in DOMAINS for budget in BUDGETS]
    grid += [("small", budget, chosen) for budget in ("usual", "pure") for chosen in SETTINGS]
    made = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for domain, budget, chosen in grid:
            try:
                plan = session_plan(DOMAINS[domain], 50_000, BUDGETS[budget], **SETTINGS[chosen])
                made[f"{domain}, {budget}, {chosen}"] = settings_to_json(plan, KNOWN)
            except ic.errors.OnlineICError as error:
                made[f"{domain}, {budget}, {chosen}"] = type(error).__name__
        rule = ic.MultiplicativeWeights(variant="book")
        book = textbook_plan(DOMAINS["small"], 10**7, ic.Budget(5.0), rule, beta=0.05, max_queries=50)
        made["textbook"] = settings_to_json(book, KNOWN)
    return made


def stamp():
    """Return the digest of what is stored."""
    stored = [PLANS, *sorted(FOLDER.glob("default_*.json")), *sorted(FOLDER.glob("session_*.json"))]
    return hashlib.sha256(b"".join(file.read_bytes() for file in stored)).hexdigest()[:16]


def test_the_plans_of_today_are_those_that_are_stored():
    made, stored = plans(), json.loads(PLANS.read_text())

    assert stored.keys() == made.keys()
    for name in stored:
        assert plans_alike(made[name], stored[name]), f"{name}: run this file, and set the stamp it prints"


def test_the_stamp_in_every_ledger_is_the_digest_of_the_stored_plans_and_transcripts():
    assert RULES == stamp(), "files of before are of other rules: set RULES to the digest"


@pytest.mark.parametrize("place", ["threshold", "hit_price"])
def test_a_plan_of_another_number_is_found(place):
    made = plans()["small, usual, default"]
    other = json.loads(json.dumps(made))
    fields = other["fields"]
    if place == "threshold":
        fields["sparse"]["fields"]["threshold"] += max(1, fields["sparse"]["fields"]["threshold"] // 1000)
    else:
        fields["hit_price"] = {"fraction": str(Fraction(fields["hit_price"]["fraction"]) * 2)}

    assert plans_alike(made, json.loads(json.dumps(made)))
    assert not plans_alike(made, other)


if __name__ == "__main__":
    PLANS.write_text(json.dumps(plans(), sort_keys=True, separators=(",", ":")) + "\n")
    sys.stdout.write(f"RULES = {stamp()!r}\n")
