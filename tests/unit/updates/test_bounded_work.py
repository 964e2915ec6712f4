"""Every refit ends: no update goes through its hypothesis more often than its settings say."""

import inspect
import math
import re
import sys
from collections import Counter

import attrs
import numpy as np
import pytest

import onlineic as ic
from onlineic import updates
from onlineic.hypothesis.classes import class_cells
from onlineic.queries import Measurement, Partition
from onlineic.updates.fitted_tables import FittedTables

DOMAIN = ic.Domain.of(a=range(6), b=range(5), c=range(4))
SMALL = ic.Domain.of(a=range(4))
# one call of each goes once through the cells, class cells, databases or parameters
PASSES = {
    "CoarseDomain.evaluate",
    "_Loss.gradient",
    "Histogram.tilted",
    "SignedHistogram.shifted",
    "VersionSpace.halved",
    "_step",
    "_step_blocks",
}
RULES = {
    "weights": updates.MultiplicativeWeights(),
    "book": updates.MultiplicativeWeights("book"),
    "measured": updates.MeasuredWeights(replays=5),
    "perceptron": updates.Perceptron(),
    "median": updates.Median(size=3),
    "entropy": updates.MaximumEntropy(),
    "short": updates.MaximumEntropy(evaluations=7, dear_evaluations=3),
    "stopped": updates.MaximumEntropy(misfit=0.9),
    "to the end": updates.MaximumEntropy(evaluations=150, kl_weight=0.1),
    "tables": FittedTables(),
    "few tables": FittedTables(evaluations=40, steps=5, dear_steps=2),
    "mixture": updates.MixtureOfProducts(components=20, first_steps=12, steps=3),
    "steps": updates.MeasuredSteps(updates.MultiplicativeWeights()),
    "start": updates.FittedStart(updates.MultiplicativeWeights(), 2),
    "now and then": updates.FittedAt(updates.MaximumEntropy(), (1, 3)),
}
SCALES = [1e-9, 1e3]


def table(domain, *axes):
    return Partition(domain, axes, tuple(np.arange(domain.shape[axis]) for axis in axes))


def shapes(size, chance):
    """Values that noise could have, and such as it never has."""
    yield chance.dirichlet(np.full(size, 0.1))
    yield np.zeros(size)
    yield np.where(np.arange(size) % 2, 1e6, -1e6)
    yield chance.normal(0.0, 1e3, size)


def streams(domain, by_query):
    """Releases one after the other: of queries, or of tables, some of them the same again."""
    for number, scale in enumerate(SCALES):
        chance = np.random.default_rng(number)
        sets = [(0, 1), (1, 2), (0,), (0, 1)] if len(domain.shape) > 1 else [(0,)]
        tables = [table(domain, *axes) for axes in sets]
        for place in range(4):
            held = []
            for target in tables:
                target = target.block(0) if by_query else target
                size = 1 if by_query else target.blocks
                values = list(shapes(size, chance))[place]
                held.append(Measurement(target, values, scale))
            yield tuple(held)


def passes(act):
    """Return what an act returns, and how often it went through a hypothesis."""
    counts = Counter()

    def heard(frame, event, _):
        if event == "call":
            counts[frame.f_code.co_qualname] += 1

    sys.setprofile(heard)
    try:
        found = act()
    finally:
        sys.setprofile(None)
    return found, sum(counts[name] for name in PASSES)


@pytest.mark.parametrize("name", RULES)
def test_an_update_ends_after_the_passes_that_its_settings_say(name):
    rule, most = RULES[name], 0
    domain = SMALL if name == "median" else DOMAIN
    by_query = name in ("weights", "book", "perceptron", "median", "steps")
    for releases in streams(domain, by_query):
        hypothesis = rule.init(domain)
        for count in range(1, len(releases) + 1):
            hypothesis, made = passes(lambda: rule.update(hypothesis, releases[:count], 0.1))  # noqa: B023
            most = max(most, made / rule.most_passes(count))

    assert 0.0 < most <= 1.0


def test_a_single_attribute_that_is_told_first_is_learned():
    told = Measurement(table(DOMAIN, 0), np.arange(6) / 15.0, 1e-3)
    rule = FittedTables()
    learned = rule.update(rule.init(DOMAIN), (told,), 0.1)

    assert np.abs(learned.marginal("a") - told.values).max() < 0.02


def test_class_cells_of_a_refit_are_no_more_than_its_settings_say():
    rule, domain = updates.MaximumEntropy(most_cells=40), ic.Domain.of(a=range(16), b=range(16))
    halves = [(np.arange(16) >= at).astype(int) for at in range(1, 16)]
    cuts = [Partition(domain, (0, 1), (cut, cut)) for cut in halves]
    hypothesis, cells = rule.init(domain), []
    for count in range(1, len(cuts) + 1):
        told = tuple(Measurement(one, np.full(4, 0.25), 0.01) for one in cuts[:count])
        hypothesis = rule.update(hypothesis, told, 0.1)
        said = re.search(r"([\d x]+) classes", repr(hypothesis.histogram))[1]
        cells.append(math.prod(map(int, said.split(" x "))))

    assert 256 == class_cells(cuts)
    assert 36 <= max(cells) <= 40


def test_every_rule_of_the_package_says_how_long_it_takes():
    named = [getattr(updates, name) for name in updates.__all__]
    classes = [one for one in [*named, FittedTables] if inspect.isclass(one) and attrs.has(one)]
    rules = [one for one in classes if issubclass(one, updates.UpdateRule)]

    assert {type(rule) for rule in RULES.values()} == set(rules)
    assert all(type(rule).most_passes is not updates.UpdateRule.most_passes for rule in RULES.values())
