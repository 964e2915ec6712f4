"""What a session is asked to be: one object that planner, session, forecast and ledger share."""

from collections.abc import Mapping
from typing import Any, Literal, final

import attrs

from onlineic.accounting.budget import Budget, check_budget
from onlineic.accounting.of_table import per_row
from onlineic.domain.domain import Domain
from onlineic.errors import (
    InvalidParameterError,
    check_choice,
    checked_integer,
    checked_real,
    set_fields,
    shown,
)
from onlineic.hypothesis.base import Hypothesis
from onlineic.plan.announced import Announcement, Questions, announcement
from onlineic.plan.defaults import USUAL_QUERIES
from onlineic.plan.demand import opens_with
from onlineic.plan.fitting_rule import TABLE_RULES, table_rule
from onlineic.plan.plan import LEAST, MOST, MOST_EPSILON, MOST_HARD, Rule
from onlineic.plan.purchase_rule import PurchaseRule, TestsOnly
from onlineic.queries.reach import Reach
from onlineic.queries.within import Within, checked_within
from onlineic.sparse.base import NumericSparse
from onlineic.sparse.gumbel import GumbelSparse
from onlineic.sparse.kinds import SparseName
from onlineic.updates.base import check_rule
from onlineic.updates.multiplicative_weights import MultiplicativeWeights

Release = Literal["answer", "partition"]
Exhausted = Literal["untested", "raise"]


@final
@attrs.frozen
class Settings:
    """The settings of a session, all public; what is None is left to the planner.

    Args:
        budget: For the whole life of the session, however many queries are asked.
        rows_per_person: At least 1. The most rows that a person can have: the budget is a person's then.
        max_queries: Length of the stream that the session-wide accuracy statement covers. It bounds, and says
            nothing of what will be asked.
        beta: Failure probability of that statement.
        hard_answers: c. The threshold is such that max_queries tests of equal numbers waste few hard answers;
            nothing promises that c is enough. Later hits cost a share of what is left, at more noise and a
            higher threshold, so that none is ever the last, unless the mechanism or `threshold` is given.
        certify: alpha. With it, c = max(1, floor T(alpha)) hard answers are paid for, and the threshold is
            alpha + a_hit: a certificate for all answers, of single queries. Nothing is bought without a test.
            Where `questions` tells that few will come, all of them may be measured instead, if that errs by
            at most alpha.
        update: None: `MaximumEntropy`, above 2^26 cells `MixtureOfProducts`; or `MultiplicativeWeights` with
            `certify` or without partitions.
        sparse: None: `ExponentialSparse` for delta = 0; else `GumbelSparse` for partitions, and for numbers
            the one of the two that resolves smaller gaps.
        release: None: partitions where `MaximumEntropy` can read them.
        threshold: Fraction of records; overrides the rule of `hard_answers`, for all tests.
        prior: A public start; without one, partition sessions buy first tables.
        exhausted: What to do when the hard answers are used up.
        restarts: How often the session shall be closed and resumed: that is paid for besides the hard
            answers, by mechanisms that keep a threshold (theory 5.4).
        purchases: What is bought without a test: `TestsOnly` for nothing; a `DemandPurchases` or a rule of
            one's own. One purchase that was settled beforehand (`plan.settled_purchases`) goes with any
            update rule: those that read no tables start from the maximum-entropy fit of it. None: a
            `DemandPurchases` where partitions teach, without a prior; else nothing.
        questions: A number; or an iterable of names, of sets of names, or of questions. Announced, and public
            (`Announcement` when it is read). About how many different numbers will be asked for, where each
            cell of a cross table is one, and a mean two: so much is prepared for, and if they are few all are
            measured, without a test. Or sets of attributes that will be asked together, each a name or a
            tuple of names: tables for them are bought with the first question. Or a list of questions, which
            tells both, and whether there are dense ones: queries whose weights are no conditions on
            attributes, of which pairs say nothing. With those among them a session starts from all cells.
        within: How exact each answer is to be: a number, for certain, or `expected(number)`. A fraction, of
            the records for a count, of the range of the attribute for a mean. Nothing is spent that no
            question needs for it.
        reach: Of which sets of attributes the table can be counted, where it stays where it lives; the table
            tells.

    Raises:
        InvalidParameterError: If a setting is outside its range, or two contradict each other.
    """

    budget: Budget
    rows_per_person: int = attrs.field(default=1, kw_only=True)
    max_queries: int = attrs.field(default=10_000, kw_only=True)
    beta: float = attrs.field(default=0.05, kw_only=True)
    hard_answers: int | None = attrs.field(default=None, kw_only=True)
    certify: float | None = attrs.field(default=None, kw_only=True)
    update: Rule | None = attrs.field(default=None, kw_only=True)
    sparse: SparseName | NumericSparse | None = attrs.field(default=None, kw_only=True)
    release: Release | None = attrs.field(default=None, kw_only=True)
    threshold: float | None = attrs.field(default=None, kw_only=True)
    prior: Hypothesis | None = attrs.field(default=None, kw_only=True, eq=id)  # known by its digest alone
    exhausted: Exhausted = attrs.field(default="untested", kw_only=True)
    restarts: int = attrs.field(default=0, kw_only=True)
    purchases: PurchaseRule[Any] | None = attrs.field(default=None, kw_only=True)
    questions: Questions | None = attrs.field(default=None, kw_only=True)
    reach: Reach | None = attrs.field(default=None, kw_only=True)
    within: Within | None = attrs.field(default=None, kw_only=True)

    def __attrs_post_init__(self) -> None:
        check_budget(self.budget)
        check_rule(self.update)
        per_row(self.budget, self.rows_per_person)
        set_fields(self, rows_per_person=int(self.rows_per_person))
        epsilon = checked_real("epsilon", self.budget.epsilon, at_least=LEAST, at_most=MOST_EPSILON)
        set_fields(
            self,
            budget=attrs.evolve(self.budget, epsilon=epsilon),
            max_queries=checked_integer("max_queries", self.max_queries, at_least=1, at_most=MOST),
            beta=checked_real("beta", self.beta, at_least=LEAST, below=1.0),
            restarts=checked_integer("restarts", self.restarts, at_least=0, at_most=MOST_HARD),
        )
        check_choice("exhausted", self.exhausted, "untested", "raise")
        if self.certify is not None:
            if self.hard_answers is not None or self.threshold is not None:
                raise InvalidParameterError(
                    "certify must be None with hard_answers or threshold, got certify="
                    f"{shown(self.certify)}; it settles both, so leave out one of them."
                )
            if self.release == "partition":
                raise InvalidParameterError(
                    "release must be 'answer' with certify: T(alpha) counts single queries."
                )
            set_fields(self, certify=checked_real("certify", self.certify, at_least=LEAST, below=1.0))
        if self.release not in (None, "answer", "partition"):
            raise InvalidParameterError(
                f"release must be 'answer' or 'partition', got release={shown(self.release)}."
            )
        if self.threshold is not None:
            set_fields(self, threshold=checked_real("threshold", self.threshold, above=0.0, below=1.0))
        self._check_purchases()
        self._check_within()
        if self.hard_answers is not None:
            asked = checked_integer("hard_answers", self.hard_answers, at_least=1, at_most=MOST_HARD)
            set_fields(self, hard_answers=asked)

    def _check_purchases(self) -> None:
        """Refuse a rule that is none, or that other settings contradict."""
        rule = self.purchases
        if rule is not None and not isinstance(rule, PurchaseRule):
            got, remedy = f"a {type(rule).__name__}", "plan.TestsOnly()"
            if isinstance(rule, type):
                got, remedy = f"the class {rule.__name__}", f"{rule.__name__}()"
            raise InvalidParameterError(
                f"purchases must be a PurchaseRule, got {got}; write {remedy}, or leave it out."
            )
        if self.questions is not None:
            set_fields(self, questions=announcement(self.questions))
            alone = self.announced == Announcement(self.announced.count)  # a number contradicts nothing
            if not (alone or (rule is None and self.only("hard_answers", "threshold"))):
                raise InvalidParameterError(
                    "questions must be None or a number where rule, start or purchases are settled, got "
                    "both; leave out one of them."
                )
        if rule is None or isinstance(rule, TestsOnly):
            return
        free = ["release", "hard_answers", "threshold", "purchases"]
        settled = opens_with(rule) is not None  # one opening, from which any rule can go on
        if settled and isinstance(self.sparse, str | None) and self.sparse != "laplace":
            free += ["update", "sparse"]
        if not self.only(*free) or not (settled or self.partition):
            raise InvalidParameterError(
                "purchases must be None or TestsOnly with certify, prior, update, sparse or "
                "release='answer', got another rule; leave out one of them."
            )

    def _check_within(self) -> None:
        """Refuse a wish beside what settles by itself how exact answers are."""
        if self.within is None:
            return
        set_fields(self, within=checked_within(self.within))
        if not self.only() or self.sparse == "laplace":
            raise InvalidParameterError(
                "within must be None with update, sparse, release, prior, certify, hard_answers, threshold "
                f"or purchases, got within={shown(self.within)}; each settles what is bought: leave out one."
            )

    @property
    def of_row(self) -> Budget:
        """What the session may spend on one row: less than its budget, if a person has several."""
        return per_row(self.budget, self.rows_per_person)

    def written(self) -> Mapping[str, Any]:
        """Return the settings as a ledger file holds them, by name."""
        held = {field.name: getattr(self, field.name) for field in attrs.fields(Settings)}
        held |= {"rows_per_person": self.rows_per_person if self.rows_per_person > 1 else None}
        held |= {"questions": None if self.questions is None else self.announced.written()}
        for name in (
            "restarts",
            "purchases",
            "questions",
            "reach",
            "within",
        ):  # files of 0.1.0 do not know them
            if not held[name]:
                del held[name]
        return held

    @property
    def announced(self) -> Announcement:
        """What was told of the questions to come."""
        return Announcement() if self.questions is None else announcement(self.questions)

    def of_domain(self, domain: Domain) -> "Settings":
        """Return the settings of a session over this domain, of which all announced questions can be asked.

        Raises:
            InvalidQueryError, DomainMismatchError, TooLargeError: If one cannot.
        """
        if self.questions is None or not self.announced.asked:
            return self
        return attrs.evolve(self, questions=self.announced.of_domain(domain))

    @property
    def expects(self) -> int:
        """How many different questions to plan for: those announced, or as many as are usual."""
        return self.announced.count or USUAL_QUERIES

    def only(self, *names: str) -> bool:
        """Whether nothing of the plan was settled but these."""
        left_to_planner = (
            "update", "sparse", "release", "prior", "certify", "hard_answers", "threshold", "purchases",
        )  # fmt: skip
        return all(getattr(self, name) is None for name in left_to_planner if name not in names)

    @property
    def partition(self) -> bool:
        """Whether hits release partitions: where a rule of `TABLE_RULES` reads them, if nobody says."""
        if self.release is not None:
            return self.release == "partition"
        fits = self.update is None or isinstance(self.update, TABLE_RULES)
        able = self.sparse in (None, "gumbel", "exponential") or isinstance(self.sparse, GumbelSparse)
        return fits and able and self.certify is None

    @property
    def rule(self) -> Rule:
        """The update rule."""
        if self.update is not None:
            return self.update
        return table_rule(self.prior) if self.partition else MultiplicativeWeights()

    @property
    def opens(self) -> bool:
        """Whether tables are bought first: where the rule reads them all, and nobody brings a start or a
        mechanism of his own."""
        if isinstance(self.purchases, TestsOnly):
            return False
        reads = self.update is None or isinstance(self.update, TABLE_RULES)
        return self.partition and reads and self.prior is None and not isinstance(self.sparse, NumericSparse)

    @property
    def prices_fall(self) -> bool:
        """Whether prices of hits fall: where nobody has settled the mechanism or its threshold."""
        return (
            self.threshold is None and self.sparse != "laplace" and not isinstance(self.sparse, NumericSparse)
        )


def settings_of(budget: Budget | Settings, **keywords: Any) -> Settings:
    """Return the settings that a budget and keywords make, or those that are given as one object.

    Raises:
        InvalidParameterError: If keywords come beside an object that holds them.
    """
    if type(budget) is not Settings:  # a subclass could plan one budget and name another
        return Settings(budget, **keywords)
    if Settings(budget.budget, **keywords) != Settings(budget.budget):
        raise InvalidParameterError(
            "settings must come as Settings or as keywords, got both; "
            "write attrs.evolve(settings, name=value)."
        )
    return budget
