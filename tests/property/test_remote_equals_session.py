"""A served session says what one at hand says, to every method: two of one seed, one of them over HTTP."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import onlineic as ic
from onlineic.errors import InvalidParameterError, InvalidQueryError, TooFewRecordsError
from onlineic.noise import SimulatedNoise
from onlineic.plan import DemandPurchases
from support.served import served

DOMAIN = ic.Domain.of(age=range(20, 40), sex=["F", "M"], region=["n", "e", "s", "w"], other=3)
COUNTS = np.random.default_rng(4).multinomial(30_000, np.random.default_rng(5).dirichlet(np.full(480, 0.2)))
TABLE = COUNTS.reshape(DOMAIN.shape)
CONDITIONS = st.one_of(
    st.none(),
    st.sampled_from(["F", "M"]).map(lambda sex: ic.where(sex=sex)),
    st.tuples(st.integers(20, 30), st.integers(30, 39)).map(lambda ends: ic.where(age=ic.between(*ends))),
    st.sampled_from("nesw").map(lambda one: ~ic.where(region=one)),
)
CALLS = st.one_of(
    CONDITIONS.map(lambda one: ("answer", (ic.where() if one is None else one,))),
    st.lists(CONDITIONS.filter(lambda one: one is not None), min_size=1, max_size=4).map(
        lambda many: ("answer_many", (many,))
    ),
    CONDITIONS.map(lambda one: ("answer", (ic.marginal("sex", "region"),))),
    CONDITIONS.map(lambda one: ("mean", ("age", one))),
    CONDITIONS.map(lambda one: ("sum", ("age", one))),
    CONDITIONS.map(lambda one: ("median", ("age", one))),
    CONDITIONS.map(lambda one: ("cdf", ("age", one))),
    CONDITIONS.map(lambda one: ("histogram", ("region", one))),
    CONDITIONS.map(lambda one: ("group_by", (("sex", "region"), one))),
    CONDITIONS.map(lambda one: ("group_by", ("sex", one, "mean", "age"))),
    CONDITIONS.map(lambda one: ("share", (ic.where(age=ic.below(30)), one))),
    CONDITIONS.map(lambda one: ("share", (ic.where(age=ic.below(30), region="n"), one, "sex"))),
    CONDITIONS.map(lambda one: ("share", (ic.where(sex="F"), one, ["region", ic.cut("age", [30])]))),
    CONDITIONS.map(lambda one: ("top", ("region", 2, one))),
    st.sampled_from(
        [
            ("sql", ("SELECT COUNT(*) FROM t WHERE age > 30",)),
            ("sql", ("SELECT region, COUNT(*), AVG(age) FROM t GROUP BY region",)),
            ("sql", ("SELECT region, 100 * AVG(sex = 'F') AS pct FROM t GROUP BY region ORDER BY pct",)),
            ("sql", ("SELECT FLOOR(age / 5) * 5 AS a, COUNT(*) / SUM(COUNT(*)) OVER () FROM t GROUP BY a",)),
            ("sql", ("SELECT STDDEV(age), MEDIAN(age) - AVG(age) FROM t WHERE region <> 'n'",)),
            ("explain", ("SELECT sex, COUNT_IF(age > 30) / COUNT(*) FROM t GROUP BY sex",)),
            ("explain", ({"share": {"sex": "F"}, "by": ["region"]},)),
            ("group_by", (ic.cut("age", [25, 30]), None)),
            ("group_by", ([ic.case({"x": ic.where(region="n")}, "y"), "sex"], None, "mean", "age")),
            ("quantile", ("age", [0.25, 0.75])),
            ("covariance", ("age", "other")),
            ("correlation", ("age", "other", ic.where(sex="F"))),
            ("explain", ("SELECT AVG(age) FROM t",)),
            ("answer", ("age > 25 AND sex = 'F'",)),
            ("answer", ({"age": [22, 33]},)),
        ]
    ),
    CONDITIONS.filter(lambda one: one is not None).map(lambda one: ("explain", (one,))),
)


def opened(seed):
    return ic.OnlineIC(ic.PrivateData(TABLE, DOMAIN), ic.Budget(1.0, 1e-6), noise=SimulatedNoise(seed))


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """Two sessions of one seed."""
    folder = tmp_path_factory.mktemp("served")
    with (
        served(opened(7), folder, names=["ann"]) as server,
        ic.connect(server.url, server.tokens["ann"]) as far,
    ):
        yield opened(7), far


def said(session, name, arguments):
    try:
        return getattr(session, name)(*arguments)
    except (TooFewRecordsError, InvalidQueryError) as error:
        return type(error), str(error)


def plain(found):
    """All that a result says, arrays as lists."""
    if isinstance(found, ic.Answer):
        return {**found.to_dict(), "law": found.law}
    if isinstance(found, list | tuple):
        return [plain(one) for one in found]
    if hasattr(type(found), "__attrs_attrs__"):
        return {
            one.name: plain(getattr(found, one.name))
            for one in type(found).__attrs_attrs__
            if one.name not in ("_ground", "_rest", "_session", "_search", "number")
        }
    return repr(found.tolist() if isinstance(found, np.ndarray) else found)  # nan is not nan


@settings(max_examples=60)
@given(CALLS)
def test_every_method_says_over_http_what_it_says_at_hand(both, call):
    near, far = both
    name, arguments = call

    assert plain(said(near, name, arguments)) == plain(said(far, name, arguments))


def test_the_session_as_a_whole_is_the_same(both):
    near, far = both

    assert (near.domain, near.n, near.beta) == (far.domain, far.n, far.beta)
    assert str(near.summary()) == str(far.summary())
    assert near.summary().to_html() == far.summary().to_html()
    assert near.statistics().to_dict() == far.statistics().to_dict()
    assert ("ann", 1.0) == (far.part()["name"], far.part()["share"])
    answers = [near.answer({"sex": "F"}), near.answer({"sex": "M"})]
    questions = [{"sex": "F"}, {"sex": "M"}]
    assert near.joint_bounds(questions, answers).tolist() == far.joint_bounds(questions, answers).tolist()
    assert [one["value"] for one in far.released()] == [one.to_dict()["value"] for _, one in near.released()]


def test_what_is_made_of_answers_of_several_moments_is_read_from_one_hypothesis_there_too(tmp_path):
    """The first of these answers were told before tables that the later ones bought."""
    questions = [ic.where(age=age) for age in range(20, 40)]

    def listening():
        data = ic.PrivateData(TABLE, DOMAIN)
        return ic.OnlineIC(
            data,
            ic.Budget(1.0, 1e-6),
            purchases=DemandPurchases(rent=0),
            noise=SimulatedNoise(3),
            threshold=0.5,
        )

    with (
        served(listening(), tmp_path, names=["ann"]) as server,
        ic.connect(server.url, server.tokens["ann"]) as far,
    ):
        near = listening()
        told = [near.answer(question) for question in questions]
        assert plain(told) == plain([far.answer(question) for question in questions])
        now = near.snapshot(questions, told)
        assert any(one is not before for one, before in zip(now, told, strict=True))
        assert plain(now) == plain(far.snapshot(questions, told))
        assert plain(near.mean("age")) == plain(far.mean("age"))
        forged = ic.Answer(np.ones(2), np.ones(2), "easy", 0.1)
        for session in (near, far):
            with pytest.raises(InvalidParameterError, match=r"answers\[0\] must have shape \(\), "):
                session.snapshot(questions[:1], [forged])
        with pytest.raises(InvalidParameterError, match="the answers to these"):
            far.snapshot(questions, told[1:])


def test_what_a_server_does_not_take_is_refused_before_it_is_sent(both):
    _, far = both
    for question in (np.ones(DOMAIN.shape), ic.dense(np.ones(DOMAIN.shape)), 5):
        with pytest.raises(InvalidQueryError):
            far.answer(question)
    with pytest.raises(InvalidQueryError, match="SELECT AVG"):
        far.explain(lambda session: session.mean("age"))
