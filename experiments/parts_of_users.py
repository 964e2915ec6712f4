"""What a user's default part of a served budget pays: as it comes, and under a wish.

    python experiments/parts_of_users.py [--quick] [--from-json]

So many users share one session on a made table of 30,000 records and six attributes, each with the default
part, twice an equal share. They ask in turns, each random ranges of their own. *Without means*: questions
that are answered without a check, or less exactly than was wished, since the part does not pay for more.
Simulated noise: NOT PRIVATE.
Writes results/parts_of_users.json; the markdown table and the figure are made from that file alone.
"""

import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import attrs
import numpy as np
from study.outcome import script, seeds, stamped

import onlineic as ic
from onlineic.evaluate import random_stream
from onlineic.noise import SimulatedNoise, public_generator
from onlineic.service import User
from onlineic.session import Quota

NAME = "parts_of_users"
SIZES = {"age": 74, "sex": 2, "region": 4, "school": 16, "smoker": 2, "job": 8}


@attrs.frozen
class Config:
    """What is run; all seeds come from one SeedSequence."""

    records: int = 30_000
    users: tuple[int, ...] = (2, 4, 6, 8, 12, 20)
    wishes: tuple[float, ...] = (0.02, 0.01)
    each: int = 20  # questions of a user
    runs: int = 2
    seed: int = 20261129


def table_of(config: Config) -> ic.PrivateData:
    """Return the made table: labels of any attribute alike."""
    domain = ic.Domain.of({name: range(size) for name, size in SIZES.items()})
    drawn = public_generator(config.seed)
    columns = {name: drawn.integers(0, size, config.records) for name, size in SIZES.items()}
    return ic.PrivateData.from_records(columns, domain)


def shared(data: ic.PrivateData, config: Config, users: int, wish: float | None, seed: int) -> dict[str, Any]:
    """Return how many questions of all users are answered for want of means, and what is spent."""
    session = ic.OnlineIC(data, ic.Budget(1.0, 1e-9), within=wish, noise=SimulatedNoise(seed))
    asked, without = random_stream(data.domain, users * config.each, seed), 0
    names = [f"user {place}" for place in range(users)]
    for place, question in enumerate(asked):
        user = User(names[place % users], 0.0, None, None, 600)
        quota = Quota(user.name, Fraction(user.part(users)) * session.view().pool)
        answer = session.paid_by(quota).answer(question)
        without += answer.status == "untested" and answer.reason != "within"
    spent = float(session.account.spent / session.account.capacity)
    return {"without_means": without / len(asked), "spent": spent}


def run(quick: bool) -> dict[str, Any]:
    """Return the result: a row for every number of users and wish."""
    start = time.perf_counter()
    config = Config(users=(2, 6), wishes=(0.02,), each=5, runs=1) if quick else Config()
    data = table_of(config)
    rows = [
        {"users": users, "wish": wish}
        | {"runs": [shared(data, config, users, wish, seed) for seed in seeds(config.seed, config.runs)]}
        for users in config.users
        for wish in (None, *config.wishes)
    ]
    return stamped(config, start, rows=rows)


def again(_: dict) -> dict[str, Any]:
    """Return places in the result and what one seed of a cheap row gives there now, for `make fresh`."""
    config = Config()
    seed = seeds(config.seed, config.runs)[0]
    return {"rows/1/runs/0": shared(table_of(config), config, config.users[0], config.wishes[0], seed)}


def means(result: dict[str, Any], name: str) -> dict[tuple[int, float | None], float]:
    """Return the mean over the runs, by number of users and wish."""
    return {
        (row["users"], row["wish"]): float(np.mean([one[name] for one in row["runs"]]))
        for row in result["rows"]
    }


def said(wish: float | None) -> str:
    """Return a wish in words."""
    return "as it comes" if wish is None else f"within {wish:.0%}"


def table(result: dict[str, Any]) -> str:
    """Return what share of the questions is answered for want of means, and what is spent in all."""
    wishes = [None, *result["config"]["wishes"]]
    without, spent = means(result, "without_means"), means(result, "spent")
    head = [*(f"without means, {said(one)}" for one in wishes), *(f"spent, {said(one)}" for one in wishes)]
    lines = [f"| users | {' | '.join(head)} |", "|" + "---|" * (len(head) + 1)]
    for users in result["config"]["users"]:
        cells = [*(f"{without[users, one]:.0%}" for one in wishes)]
        cells += [f"{spent[users, one]:.0%}" for one in wishes]
        lines.append(f"| {users} | {' | '.join(cells)} |")
    return "\n".join(lines)


def figure(result: dict[str, Any], path: Path) -> None:
    """Draw the share of questions without means against users; needs matplotlib."""
    from matplotlib.figure import Figure

    canvas = Figure(figsize=(5, 3.4), layout="constrained")
    axes, without = canvas.subplots(), means(result, "without_means")
    colours = ("#D55E00", "#009E73", "#0072B2")
    for wish, colour in zip((None, *result["config"]["wishes"]), colours, strict=False):
        users = result["config"]["users"]
        axes.plot(users, [without[one, wish] for one in users], marker="o", color=colour, label=said(wish))
    axes.set(xscale="log", xlabel="users, each with the default part", ylabel="questions without means")
    axes.set_xticks(result["config"]["users"], [*map(str, result["config"]["users"])], minor=False)
    axes.minorticks_off()
    axes.grid(True, color="#DDDDDD", linewidth=0.6)
    axes.legend(fontsize=8)
    canvas.savefig(path, dpi=110)


if __name__ == "__main__":
    script(NAME, __doc__, run, table, figure)
