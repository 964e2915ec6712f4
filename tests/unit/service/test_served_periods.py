"""A table that grows, served: ranges in questions, the page over time, and refusals of hostile ends."""

import http.client
import json
from fractions import Fraction
from urllib.parse import urlencode

import numpy as np
import pytest

import onlineic as ic
from onlineic.cli import main
from onlineic.errors import InvalidInputError, InvalidParameterError, InvalidQueryError, SessionStateError
from onlineic.periods import Periods, ServedPeriods
from onlineic.session import Quota
from support.events import FOR_EVER
from support.noise import FAR, Silent
from support.served import served

pytestmark = [
    pytest.mark.filterwarnings("ignore::onlineic.errors.WideBoundWarning"),
    pytest.mark.filterwarnings("ignore::onlineic.errors.VacuousPromiseWarning"),
]
DOMAIN = ic.Domain.of(age=5, sex=["F", "M"])
BUDGET = ic.Budget(1.0, 1e-9)
LABELS = ("2026-01", "2026-02", "2026-03", "2026-04")
COUNTS = {
    label: np.random.default_rng(seed).multinomial(3_000, np.full(10, 0.1))
    for seed, label in enumerate(LABELS)
}
QUESTION = {"age": [1, 3], "sex": "F"}


def data_of(label):
    return ic.PrivateData(COUNTS[label], DOMAIN)


def grown(folder):
    """Four months, of which a quarter is closed, in a root ledger; not open."""
    with Periods(
        folder / "t.db", DOMAIN, BUDGET, levels=("month", "quarter"), table="t", load=data_of, max_queries=100
    ) as held:
        for label in LABELS:
            held.add(label, data_of(label))
        held.close("2026-Q1")
    return folder / "t.db"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served")
    held = ServedPeriods(Periods.resume(grown(folder), load=data_of, durability="all"))
    with served(held, folder, curators=frozenset({"ann"})) as running:
        yield running


@pytest.fixture
def remote(server):
    with ic.connect(server.url, server.tokens["ann"]) as found:
        yield found


def sent(server, method, path, body=None, token=None):
    line = http.client.HTTPConnection("127.0.0.1", server.port, timeout=FOR_EVER)
    kept = {"Authorization": f"Bearer {token or server.tokens['ann']}"}
    line.request(method, path, None if body is None else json.dumps(body), kept)
    reply = line.getresponse()
    text = reply.read().decode()
    line.close()
    return reply.status, text


def true(labels):
    return sum(int(COUNTS[label].reshape(5, 2)[1:4, 0].sum()) for label in labels)


@pytest.mark.parametrize(
    ("since", "until", "labels"),
    [
        (None, None, LABELS),
        ("2026-02", "2026-03", LABELS[1:3]),
        ("2026-Q1", "2026-Q1", LABELS[:3]),
        ("2026-Q1", None, LABELS),
        ("2026-04", "2026-04", LABELS[3:]),
    ],
)
def test_a_question_is_asked_of_the_periods_that_it_names(server, remote, since, until, labels):
    body = {"questions": [QUESTION], **{k: v for k, v in (("since", since), ("until", until)) if v}}

    status, text = sent(server, "POST", "/v1/answers", body)
    answer = remote.over(since, until).answer(QUESTION)

    assert 200 == status
    (told,) = json.loads(text)["answers"]
    assert abs(told["count"] - true(labels)) <= FAR * told["error_bound"] * 3_000 * len(labels)
    assert (told["value"], 3_000 * len(labels)) == (answer.value, remote.over(since, until).n)


def test_ranges_months_and_statements_agree_with_conditions_on_the_month(remote):
    part = remote.over("2026-02", "2026-03")
    count = part.answer(QUESTION).count

    said = "age BETWEEN 1 AND 3 AND sex = 'F' AND month BETWEEN '2026-02' AND '2026-03'"
    assert count == pytest.approx(remote.answer(said).count)
    statement = "SELECT month, COUNT(*) AS many FROM t WHERE sex = 'F' GROUP BY month"
    assert ["2026-02", "2026-03"] == part.sql(statement).to_dict()["month"]
    assert part.group_by("month", ic.where(sex="F")).labels == (("2026-02", "2026-03"),)
    assert 1.5 < part.mean("age").value < 2.5
    answers = part.answer_many([QUESTION, {"sex": "M"}])
    assert (part.joint_bounds([QUESTION, {"sex": "M"}], answers) < 1).all()
    assert "several questions over age, sex; 2 answers, known and free" in repr(part.explain(QUESTION))
    assert 0 < part.explain(QUESTION).bound_easy < 1


@pytest.mark.parametrize(
    "ends",
    [
        {"since": "2027-01"},
        {"until": "2025-12"},
        {"until": "2026-Q2"},
        {"since": "2026-04", "until": "2026-01"},
        {"since": "January"},
        {"since": "2026"},
        {"since": ""},
        {"since": "2026-01-01"},
        {"since": 202601},
        {"since": ["2026-01"]},
        {"since": {"a": 1}},
        {"since": True},
        {"until": "x" * 60_000},
        {"until": "2026-01' OR 1=1"},
        {"until": "\u202e2026-01"},
        {"since": "<script>"},
        {"until": "２０２６-01"},
    ],
)
def test_ends_that_are_no_periods_are_refused_and_cost_nothing(server, remote, ends):
    before = remote.statistics()

    for path, body in (
        ("/v1/answers", {"questions": [QUESTION]}),
        ("/v1/sql", {"sql": "SELECT COUNT(*) FROM t"}),
        ("/v1/explain", {"question": QUESTION}),
        ("/v1/bounds", {"questions": [QUESTION], "values": [0.5], "statuses": ["easy"]}),
    ):
        status, text = sent(server, "POST", path, {**body, **ends})
        told = json.loads(text)
        assert (422, status) == (status, told["status"]), (path, text)
        assert told["type"] in ("invalid-query", "invalid-parameter")
        assert len(text) < 1_000
        assert "<script>" not in text or "'<script>'" in text
    assert before == remote.statistics()


def test_what_has_no_periods_refuses_ends(tmp_path):
    data = ic.PrivateData(COUNTS["2026-01"], DOMAIN)
    session = ic.OnlineIC(data, BUDGET, ledger=tmp_path / "a.db", table="t", durability="all")
    with served(session, tmp_path) as server, ic.connect(server.url, server.tokens["ann"]) as remote:
        with pytest.raises(InvalidQueryError, match="what is asked has no periods"):
            remote.over("2026-01")
        assert 3_000 == remote.over().n
        assert "periods" not in json.loads(sent(server, "GET", "/v1/about")[1])


def test_ends_are_refused_by_name_in_python(remote):
    with pytest.raises(InvalidInputError, match="since must lie in what was added, 2026-01 to 2026-04"):
        remote.over("2027-01")
    assert remote.answer(QUESTION).n == 12_000


def test_periods_are_told_with_what_is_protected(server):
    told = json.loads(sent(server, "GET", "/v1/about")[1])["periods"]

    assert [*LABELS, "2026-Q1"] == [one["label"] for one in told["periods"]]
    assert told["protects"].startswith("protects one record within its month; does not protect in which")
    assert (
        "since"
        in json.loads(sent(server, "GET", "/v1/openapi.json")[1])["paths"]["/v1/answers"]["post"][
            "requestBody"
        ]["content"]["application/json"]["schema"]["properties"]
    )


def visited(server, form=None):
    """The page of a visit, after a form if there is one."""
    line = http.client.HTTPConnection("127.0.0.1", server.port, timeout=FOR_EVER)
    own = {"Origin": f"http://127.0.0.1:{server.port}", "Sec-Fetch-Site": "same-origin"}
    kind = {"Content-Type": "application/x-www-form-urlencoded"}
    line.request("POST", "/login", f"token={server.tokens['ann']}", {**own, **kind})
    reply = line.getresponse()
    reply.read()
    cookie = {"Cookie": reply.headers["set-cookie"].split(";")[0]}
    if form is None:
        line.request("GET", "/", headers=cookie)
    else:
        line.request("POST", "/ask", urlencode(form), {**own, **kind, **cookie})
    reply = line.getresponse()
    text = reply.read().decode()
    if reply.status == 303:
        line.request("GET", reply.headers["location"].removeprefix("."), headers=cookie)
        text = line.getresponse().read().decode()
        found = reply.headers["location"].removeprefix(".").replace("/?", "/result.csv?", 1)
        line.request("GET", found, headers=cookie)
        text += line.getresponse().read().decode()
    line.close()
    return text


def test_the_page_shows_a_time_series_with_whiskers_a_table_and_csv(server):
    form = {"form": "form", "kind": "series", "a0": "sex", "o0": "is", "v0": "F", "since": "2026-02"}

    page = visited(server, {**form, "act": "ask"})
    before = visited(server, {**form, "act": "explain"})
    mean = visited(server, {"form": "form", "kind": "mean", "of": "age", "act": "explain"})

    assert "Records by month where sex is F" in page
    assert page.count("<rect") >= 3
    assert "This result as CSV" in page
    assert "month,value,error_bound,expected_error\n2026-02," in page
    assert "usually within" in page
    assert "all together, each with 95 %" in page
    assert ".over(since=&#34;2026-02&#34;)" in page
    assert "does not protect in which month" in page
    assert "synthetic" not in page
    assert "It asks for 3 numbers." in before
    assert "If you ask: mean of age" in mean


@pytest.mark.parametrize("since", ["2027-01", "<script>alert(1)</script>", "2026-04\n"])
def test_the_page_refuses_ends_and_shows_them_as_text(server, since):
    page = visited(server, {"form": "form", "kind": "count", "since": since, "act": "ask"})

    assert "This cannot be answered" in page
    assert "<script>alert" not in page


def test_the_record_summary_and_csv_are_of_ranges(server, remote):
    remote.over("2026-01", "2026-02").answer({"age": [0, 1], "sex": "M"})

    assert any(one["status"] == "easy" for one in remote.released())
    assert "A table that grows" in remote.summary().html
    assert "2026-Q1" in str(remote.summary())
    assert "age" in sent(server, "GET", "/v1/answers.csv")[1]
    drawn = "/v1/synthetic.csv?rows=6&since=2026-01&until=2026-02"
    status, text = sent(server, "GET", drawn)
    assert (200, 7) == (status, len(text.splitlines()))
    assert ["month,age,sex,synthetic", "2026-01", "2026-02"] == [
        text.splitlines()[0], text.splitlines()[1][:7], text.splitlines()[6][:7]
    ]  # fmt: skip
    assert 400 <= sent(server, "GET", f"{drawn}x")[0] < 500
    assert 400 <= sent(server, "GET", "/v1/synthetic.csv?rows=0")[0] < 500
    assert "onlineic_ready 1" in sent(server, "GET", "/metrics")[1]
    assert 0.0 < remote.part()["left"] <= 1.0


def test_an_asker_pays_a_part_of_each_session_alone(tmp_path, monkeypatch):
    quotas, paid_by = [], ic.OnlineIC.paid_by

    def spied(session, quota):
        quotas.append((session.n, quota, session.account.capacity))
        return paid_by(session, quota)

    monkeypatch.setattr(ic.OnlineIC, "paid_by", spied)
    with Periods.resume(grown(tmp_path), load=data_of, durability="all") as held:
        asked = ServedPeriods(held).paid_by(Quota("bob", Fraction(1, 4)))
        asked.over("2026-03", "2026-04").answer(ic.where(age=1))

        assert {3_000} == {n for n, _, _ in quotas}
        assert {"bob"} == {quota.name for _, quota, _ in quotas}
        assert all(0 < quota.limit < capacity / 4 for _, quota, capacity in quotas)


def test_periods_in_memory_or_without_a_block_are_not_served(tmp_path):
    with pytest.raises(InvalidParameterError, match="must have a root ledger and durability"):
        ServedPeriods(Periods(None, DOMAIN, BUDGET, noise=Silent()))
    with (
        Periods(tmp_path / "e.db", DOMAIN, BUDGET, table="t", durability="all") as held,
        pytest.raises(InvalidParameterError, match="periods must have begun"),
    ):
        ServedPeriods(held)
    with (
        Periods.resume(grown(tmp_path), durability="all") as held,
        pytest.raises(SessionStateError, match="must be at hand"),
    ):
        ServedPeriods(held)


def test_the_command_knows_a_root_ledger(tmp_path, monkeypatch, capsys):
    pytest.importorskip("uvicorn")
    from onlineic.service import Users

    grown(tmp_path)
    Users(tmp_path / "u.db", create=True).close()
    for label in LABELS:
        rows = [f"{at // 2},{'FM'[at % 2]}" for at in np.repeat(np.arange(10), COUNTS[label])]
        (tmp_path / f"{label}.csv").write_text("\n".join(["age,sex", *rows]) + "\n")
    asked = []

    def serve(session, *_, begun, **__):
        asked.append(session.n)
        begun("127.0.0.1:1")

    monkeypatch.setattr("onlineic.service.serving.serve", serve)
    command = ["serve", str(tmp_path / "t.db"), "--users", str(tmp_path / "u.db"), "--listen", "127.0.0.1:0"]
    command += ["--data"]

    assert 0 == main([*command, str(tmp_path / "{}.csv")])
    assert "serving on 127.0.0.1:1; Periods(4 months" in capsys.readouterr().err
    assert [12_000] == asked
    for more in (["x.csv"], [str(tmp_path / "{}.csv"), "--epsilon", "1"]):
        with pytest.raises(SystemExit):
            main([*command, *more])
    assert 0 != main([*command, str(tmp_path / "{}.csv"), "--table", "other"])
    with pytest.raises(SystemExit):
        main(
            ["serve", str(tmp_path / "new.db"), "--new", "--users", str(tmp_path / "u.db"), "--data", "x.csv"]
        )
