"""The page over real sockets: what it says, to whom, where it stands, and what is kept of what was typed."""

import contextlib
import csv
import http.client
import io
import json
import re
import urllib.parse
from html import unescape

import numpy as np
import pytest

import onlineic as ic
from onlineic.service import Users, gate
from onlineic.service.forms import ROWS, fields_of, query_of
from onlineic.service.gate import Limits
from support.events import FOR_EVER
from support.served import running, served

DOMAIN = ic.Domain.of(
    age=range(20, 40),
    sex=["F", "M"],
    pay=ic.binned([0, 10, 20, 50]),
    flag=[True, False],
    day=ic.dates("2024-01-01", "2024-01-31"),
    gap=ic.optional(["a", "b"]),
)
SHAPE = DOMAIN.shape
COUNTS = np.random.default_rng(1).multinomial(40_000, np.full(int(np.prod(SHAPE)), 1 / np.prod(SHAPE)))
TABLE = COUNTS.reshape(SHAPE)
NOW = [0.0]
UNKNOWN = re.compile(  # words of the package, of which nobody who comes to the page knows
    r"\b(hypothesis|hard|easy|repeat|untested|tested|released|curator|marginal|GumbelSparse|FittedTables|bound"
    r"|where\(|weights)\b"
)


def opened(path, **more):
    data = ic.PrivateData(TABLE, DOMAIN)
    return ic.OnlineIC(data, ic.Budget(1.0, 1e-6), ledger=path, table="t", durability="all", **more)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    with served(opened(folder / "a.db"), folder, ["ann", "bob", "eve"], clock=lambda: NOW[0]) as running_one:
        with contextlib.closing(Users(running_one.users)) as users:
            users.quota("eve", share=0)
        yield running_one


class Browser:
    """Sends what a browser sends, keeps its cookie, and goes where it is sent."""

    def __init__(self, port):
        self.port, self.cookie, self.at = port, "", ""

    def sent(self, method, path, body=None, accept="text/html", **more):
        line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=FOR_EVER)
        headers = {"Accept": accept, "Cookie": self.cookie, "Sec-Fetch-Site": "same-origin", **more}
        sent = None if body is None else urllib.parse.urlencode(body)
        line.request(method, path, sent, headers)
        reply = line.getresponse()
        text = reply.read().decode()
        line.close()
        if "set-cookie" in reply.headers:
            self.cookie = reply.headers["set-cookie"].split(";")[0]
        self.at, self.headers = path, reply.headers
        if reply.status == 303:
            return self.sent("GET", reply.headers["location"].removeprefix("."), accept=accept)
        return reply.status, text

    def login(self, token, **more):
        return self.sent("POST", "/login", {"token": token, **more})

    def ask(self, act="ask", **form):
        return self.sent("POST", "/ask", {"form": "form", "kind": "count", "act": act, **form})

    def get(self, path, **more):
        return self.sent("GET", path, **more)


@pytest.fixture
def page(server):
    found = Browser(server.port)
    assert 200 == found.login(server.tokens["ann"])[0]
    return found


def result(text):
    """The text of what was asked, as it is read."""
    part = text.split('id="result"')[1].split('id="ask-title"')[0]
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", part)).split())


def seen(text):
    """All that is read on a page, but for what is for programs."""
    text = re.sub(r"<(title|pre|script)[^>]*>.*?</\1>", " ", text, flags=re.S)
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", text)).split())


@pytest.fixture
def fresh(tmp_path):
    """A server of whose budget nothing is spent, of users who may spend all: what they ask is remembered."""
    with served(opened(tmp_path / "a.db"), tmp_path, share=1) as running_one:
        yield running_one


# -- answers ------------------------------------------------------------------------------------------------


def test_a_number_says_what_it_usually_is_within_and_provably_in_one_sentence(page):
    status, text = page.ask(a0="sex", v0="F")

    assert 200 == status
    assert re.search(r"[\d,]+ records Records where sex is F: \d+\.\d+ % of all 40,000\.", result(text))
    assert re.search(r"Usually within [\d,]+, provably within [\d,]+, each with 95 %\.", result(text))


FORMS = [
    {"a0": "age", "o0": "between", "v0": "22", "w0": "30"},
    {"kind": "table", "of": "age"},
    {"kind": "table", "of": "sex", "by": "age"},
    {"kind": "mean", "of": "age", "a0": "sex", "v0": "M"},
    {"kind": "sum", "of": "pay"},
    {"kind": "median", "of": "age"},
    {"form": "sql", "text": "SELECT sex, COUNT(*), AVG(age) FROM t GROUP BY sex"},
    {"form": "sql", "text": "SELECT AVG(age) FROM t"},
]


@pytest.mark.parametrize("form", FORMS)
def test_every_answer_is_in_words_that_people_know_and_can_be_taken_along(page, form):
    status, text = page.ask(**form)
    assert 200 == status
    assert not UNKNOWN.search(seen(text)), UNKNOWN.search(seen(text))
    address = page.at
    assert address.startswith("/?")

    sheet = page.get(address.replace("/?", "/result.csv?", 1))[1]
    told = json.loads(page.get(address.replace("/?", "/result.json?", 1))[1])
    rows = list(csv.DictReader(io.StringIO(sheet)))
    assert rows
    assert all(None not in row for row in rows)
    assert {"question", "sql", "result"} == set(told)


@pytest.mark.parametrize("form", FORMS)
def test_explaining_says_the_price_and_asks_nothing(page, server, form):
    with ic.connect(server.url, server.tokens["bob"]) as bob:
        before = bob.statistics().asked
        status, text = page.ask("explain", **form)
        assert before == bob.statistics().asked

    assert 200 == status
    assert "If you ask" in result(text)
    assert "It asks for" in result(text)
    assert "act=explain" in page.at
    assert not UNKNOWN.search(seen(text)), UNKNOWN.search(seen(text))


def test_of_a_table_the_lines_on_the_bars_are_usual_errors_and_the_proved_one_is_said(page):
    _, text = page.ask(kind="table", of="age")
    drawing = re.search(r"<svg.*?</svg>", text, re.S)[0]
    highest = max(int(one.replace(",", "")) for one in re.findall(r"<text[^>]*>([\d,]+)</text>", drawing))

    assert re.search(
        r"usually within [\d,]+, provably within [\d,]+, all together, each with 95 %", result(text)
    )
    assert "Lines on the bars: the usual error." in result(text)
    assert highest < 4_000  # 2,000 records a bar; the proved error would hide them


def test_what_the_same_question_is_in_other_languages_asks_the_same(page, server):
    for form in FORMS[:5]:
        _, text = page.ask(**form)
        codes = [unescape(one) for one in re.findall(r"<pre[^>]*>(.*?)</pre>", text, re.S)]
        sql, python = codes[0], codes[1]
        assert sql.startswith("SELECT")
        with ic.connect(server.url, server.tokens["ann"]) as session:
            call = python.splitlines()[-1]
            one = eval(call, {"session": session})
            other = session.sql(sql)
        if hasattr(other, "values"):
            assert np.allclose(np.ravel(one.count), other.values[:, 0])
        else:
            assert one.value == other.value
    assert 'curl -H "Authorization: Bearer $TOKEN"' in " ".join(codes)


def test_a_question_that_is_always_the_same_is_called_exact_and_costs_nothing(page):
    """Nobody is of two sexes."""
    text = page.ask(a0="sex", v0="F", a1="sex", v1="M")[1]
    assert "0 records" in result(text)
    assert "Exactly." in result(text)
    assert "The same whatever the records are." in result(text)
    assert "so it costs nothing" in result(page.ask("explain", a0="sex", v0="F", a1="sex", v1="M")[1])


def test_averages_are_rounded_alike_wherever_they_stand(page):
    """By two digits of what they usually err by."""
    alone = page.ask(kind="mean", of="age", a0="sex", v0="F")[1]
    table = page.ask(form="sql", text="SELECT sex, AVG(age) FROM t GROUP BY sex")[1]
    one = re.search(r'id="answered"[^>]*>([\d.]+)', alone)[1]
    many = re.findall(r"<td>([\d.]+)<br>", table)

    assert 2 == len(many)
    assert {len(one.partition(".")[2])} == {len(other.partition(".")[2]) for other in many}


# -- addresses ----------------------------------------------------------------------------------------------


def test_the_address_of_a_question_shows_the_form_and_what_was_told_and_asks_nothing(fresh):
    page, server = Browser(fresh.port), fresh
    page.login(server.tokens["ann"])
    form = {"a0": "age", "o0": "from", "v0": "31", "a1": "sex", "v1": "M"}
    query = query_of({"form": "form", "kind": "count", **form})
    status, text = page.get(f"/?{query}")
    assert 200 == status
    assert 'value="31"' in text
    assert "was not asked" in result(text)
    told = result(page.ask(**form)[1])
    bob = Browser(server.port)
    bob.login(server.tokens["bob"])
    with ic.connect(server.url, server.tokens["bob"]) as session:
        before = session.statistics().asked
        again = result(bob.get(f"/?{query}")[1])
        assert before == session.statistics().asked
    number = told.split(" records")[0]
    assert number == again.split(" records")[0]  # of a colleague, who did not ask
    assert 200 == page.get(page.at)[0]
    assert (
        404
        == bob.get(f"/result.csv?{query_of({'form': 'form', 'kind': 'count', 'a0': 'age', 'v0': '39'})}")[0]
    )


@pytest.mark.parametrize("columns", ["AVG(age)", "sex, COUNT(*), AVG(age)"])
def test_a_derived_question_that_was_told_is_told_again_at_its_address_to_anybody(fresh, columns):
    page, server = Browser(fresh.port), fresh
    page.login(server.tokens["ann"])
    groups = " GROUP BY sex" if "sex" in columns else ""
    told = result(page.ask(form="sql", text=f"SELECT {columns} FROM t WHERE age > 25{groups}")[1])
    bob = Browser(server.port)
    bob.login(server.tokens["bob"])

    assert "provably" in told
    assert "It cost you" in told
    assert told.split(" It cost you")[0] in result(bob.get(page.at)[1])  # who did not ask paid nothing


def test_going_back_or_reloading_never_asks_again(page):
    assert 200 == page.ask(a0="age", v0="33")[0]
    assert page.at.startswith("/?")
    assert 200 == page.get("/ask?form=form&kind=count&a0=age&v0=33")[0]  # a bookmark of earlier versions
    assert page.at.startswith("/?")


def test_a_statement_too_long_for_an_address_is_answered_where_it_was_sent(page):
    text = "SELECT COUNT(*) FROM t WHERE " + " OR ".join(f"age = {20 + at % 20}" for at in range(200))
    status, told = page.ask(form="sql", text=text)

    assert (200, "/ask") == (status, page.at)
    assert "Usually within" in result(told) or "Exactly" in result(told)


def test_questions_of_ones_own_are_listed_and_nobody_elses(page, server):
    page.ask(a0="age", v0="27", a1="sex", v1="F")
    bob = Browser(server.port)
    bob.login(server.tokens["bob"])
    own, other = page.get("/mine")[1], bob.get("/mine")[1]

    assert "Records where age is 27 and sex is F" in seen(own)
    assert "age is 27" not in seen(other)
    assert re.search(r"Records where age is 27 and sex is F</a></th><td[^>]*>[\d,]+ ± [\d,]+", own)
    with contextlib.closing(Users(server.users)) as users:
        while not any("27" in one.said for one in users.history("ann")):
            pass
        assert [] == [one for one in users.history("bob") if "27" in one.said]


def test_a_history_keeps_the_latest_once_each_and_survives_a_restart(tmp_path, monkeypatch):
    monkeypatch.setattr("onlineic.service.users.MOST_REMEMBERED", 3)
    with served(opened(tmp_path / "a.db"), tmp_path) as first:
        page = Browser(first.port)
        page.login(first.tokens["ann"])
        for age in (21, 22, 23, 24, 22):
            page.ask(a0="age", v0=str(age))
        tokens = first.tokens
    data = ic.PrivateData(TABLE, DOMAIN)
    session = ic.OnlineIC.resume(tmp_path / "a.db", data, durability="all")
    with running(session, tmp_path / "users.db", Limits()) as port:
        page = Browser(port)
        page.login(tokens["ann"])
        text = page.get("/mine")[1]
        ages = re.findall(r"Records where age is (\d+)", text)
        shown = result(
            page.get(unescape(re.search(r'href="\.(/\?[^"]*)">Records where age is 22', text)[1]))[1]
        )

    assert ["22", "24", "23"] == ages
    assert "records Records where age is 22" in shown


# -- what cannot be asked -----------------------------------------------------------------------------------

WRONG = [
    ({"a0": "sex", "v0": "f."}, "v0", "sex has no f.. Did you mean F? It has F, M."),
    ({"a0": "sex", "o0": "from", "v0": "F"}, "o0", "sex has no order: choose is, is not or is one of."),
    ({"a0": "age", "v0": ""}, "v0", "Give a value of age: 20 to 39."),
    ({"a0": "age", "v0": "200"}, "v0", "age has no 200. It has 20 to 39."),
    ({"a0": "age", "o0": "from", "v0": "200"}, "v0", "age goes from 20 to 39, not to 200."),
    ({"a0": "age", "o0": "below", "v0": "x"}, "v0", "age takes numbers, not x: 20 to 39."),
    ({"a1": "age", "o1": "between", "v1": "25"}, "w1", "Give both ends of the range."),
    ({"a0": "pay", "o0": "from", "v0": "12"}, "v0", "pay is held in steps: the nearest to 12 are 10 and 20."),
    ({"a0": "pay", "v0": "12"}, "v0", "Choose is at least, is below or is from .. to, with these steps."),
    ({"v2": "12"}, "a2", "Choose an attribute for this value, or leave the value out."),
    ({"a0": "nobody", "v0": "1"}, "a0", "There is no attribute nobody."),
    ({"kind": "mean", "of": "sex"}, "of", "sex has no numbers; choose age, pay, flag."),
    ({"kind": "median", "of": "sex"}, "of", "sex has no order; choose age, pay, day."),
    ({"kind": "table"}, "of", "Choose an attribute."),
    ({"kind": "table", "of": "age", "by": "age"}, "by", "Choose another second attribute, or none."),
    ({"form": "sql", "text": ""}, "text", "Write a statement, such as SELECT COUNT(*) FROM t."),
    ({"form": "sql", "text": "COUNT"}, "text", "A statement begins with SELECT"),
    ({"a0": "day", "v0": "2024-13"}, "v0", ""),
]


@pytest.mark.parametrize(("form", "field", "message"), WRONG)
def test_what_is_wrong_stands_beside_its_field_in_words(page, form, field, message):
    status, text = page.ask(**form)
    said = unescape(re.search(rf'id="wrong-{field}" role="alert">([^<]*)<', text)[1])

    assert 422 == status
    assert message in said
    assert not re.search(r"[a-z_]+\(|\{|\bwrite \w+=|None", said), said
    assert re.search(rf'name="{field}"[^>]*aria-invalid="true" aria-describedby="wrong-{field}"', text)
    if value := form.get("v0"):
        assert f'value="{value}"' in text  # what was typed is still there


@pytest.mark.parametrize(
    "written", [("22-30", ""), ("22 to 30", ""), ("22; 30", ""), ("22..30", ""), ("22", "30")]
)
def test_a_range_may_be_written_as_people_write_it(page, written):
    text = page.ask(a0="age", o0="between", v0=written[0], w0=written[1])[1]

    assert "Records where age is from 22 to 30" in result(text)


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ({"a0": "flag", "v0": "True"}, "flag is True"),
        ({"a0": "gap", "v0": "missing"}, "gap is missing"),
        ({"a0": "gap", "o0": "in", "v0": "a; b"}, "gap is one of a, b"),
        ({"a0": "pay", "o0": "between", "v0": "10", "w0": "50"}, "pay is from 10 to 50"),
        ({"a0": "day", "o0": "from", "v0": "2024-01-15"}, "day is at least 2024-01-15"),
        ({"a0": "age", "o0": "not", "v0": "25"}, "age is not 25"),
    ],
)
def test_conditions_of_every_kind_are_said_back(page, form, said):
    assert f"Records where {said}" in result(page.ask(**form)[1])


def test_who_has_no_share_is_told_before_and_after_that_nothing_is_measured(server):
    eve = Browser(server.port)
    text = eve.login(server.tokens["eve"])[1]
    assert "too little for a measurement" in seen(text)
    before = result(eve.ask("explain", a0="age", v0="38", a1="sex", v1="M")[1])
    after = result(eve.ask(a0="age", v0="38", a1="sex", v1="M")[1])

    assert "Too little is left to pay for measuring" in before
    assert "without a check" in after
    reach = re.compile(r"(usually|provably) within [\d,]+", re.I)
    assert [one.lower() for one in re.findall(r"provably within [\d,]+", before)] == re.findall(
        r"provably within [\d,]+", after.lower()
    )
    assert reach.search(after) or "Nothing says how far off" in after


def test_the_first_question_says_what_it_buys_for_everybody(tmp_path):
    with served(opened(tmp_path / "a.db", questions=[("age", "sex")]), tmp_path) as server:
        page = Browser(server.port)
        text = page.login(server.tokens["ann"])[1]
        assert "Nothing was asked yet. The first questions buy tables for up to" in seen(text)
        assert "drawn from all possible records alike" in seen(text)
        said = result(page.ask("explain", a0="sex", v0="F")[1])
        assert re.search(
            r"Whoever asks next also buys tables for [\d.]+ % of the budget, which serve everybody", said
        )
        status, rows = page.get("/v1/synthetic.csv?rows=50")
        assert (200, 51) == (status, len(rows.splitlines()))
        assert "nothing-learned-yet" in page.headers["content-disposition"]
        with ic.connect(server.url, server.tokens["bob"]) as bob:
            assert (0, 0.0) == (bob.statistics().asked, bob.statistics().spent)
        page.ask(a0="sex", v0="F")
        assert "serve everybody" not in result(page.ask("explain", a0="age", v0="22")[1])
        page.get("/v1/synthetic.csv?rows=50")
        assert "nothing-learned-yet" not in page.headers["content-disposition"]


def test_where_a_start_costs_something_it_is_said_how_many_are_left(tmp_path):
    """At delta = 0 tests share a secret threshold, which is paid when the server stops."""
    data, pure = ic.PrivateData(TABLE, DOMAIN), ic.Budget(1.0, 0.0)
    session = ic.OnlineIC(data, pure, ledger=tmp_path / "a.db", table="t", durability="all")
    left = session.statistics().restarts_left
    with served(session, tmp_path) as server:
        text = seen(Browser(server.port).login(server.tokens["ann"])[1])

    assert left > 0
    assert f"The server can be started again {left:,} times before that uses the budget up" in text


def test_a_question_that_is_bought_by_itself_is_said_to_be_measured(fresh):
    page = Browser(fresh.port)
    page.login(fresh.tokens["ann"])
    said = result(page.ask("explain", a0="sex", v0="F")[1])
    after = result(page.ask(a0="sex", v0="F")[1])

    assert re.search(
        r"It costs you at most [\d.]+ % of the budget. It is measured for this question. The answer:", said
    )
    assert "good enough" not in said
    assert "serve everybody" not in said
    assert "Measured for this question." in after
    before, now = (
        [int(one.replace(",", "")) for one in re.findall(r"provably within ([\d,]+\d)", text)]
        for text in (said, after)
    )
    assert now == pytest.approx(before, abs=1)  # what is told is a whole number of records
    assert before


# -- visits and problems ------------------------------------------------------------------------------------


def test_what_was_typed_survives_a_login(server):
    page = Browser(server.port)
    page.login(server.tokens["ann"])
    page.cookie = "onlineic=of-a-server-that-started-again"
    status, text = page.ask(a0="age", v0="29", a1="sex", v1="M")
    assert 401 == status
    assert "the last visit has ended" in seen(text)
    kept = unescape(re.search(r'name="next" value="([^"]*)"', text)[1])
    status, text = page.login(server.tokens["ann"], next=kept)

    assert 200 == status
    assert 'value="29"' in text
    assert {"a0": "age", "v0": "29", "a1": "sex", "v1": "M"}.items() <= fields_of(page.at[2:]).items()


def test_a_link_that_somebody_sent_leads_through_the_login_to_its_question(server):
    page = Browser(server.port)
    status, text = page.get("/?form=form&kind=count&a0=age&v0=29")
    assert 200 == status
    kept = unescape(re.search(r'name="next" value="([^"]*)"', text)[1])
    assert 'value="29"' in page.login(server.tokens["ann"], next=kept)[1]
    page.login(server.tokens["ann"], next="https://evil.example/")
    assert "/" == page.at


@pytest.mark.parametrize(
    ("path", "status", "said"),
    [
        ("/nothing", 404, "There is no such page"),
        ("/v1/nothing", 404, "There is no such page"),
        ("/curator", 403, "This page cannot do that"),
        ("/v1/synthetic.csv?rows=999999", 413, "This is too much at once"),
        ("/v1/answers", 405, "There is no such page"),
        ("/?kind=x", 422, "This cannot be answered"),
        ("/result.csv?form=form&kind=count&a0=age&v0=36&a1=gap&v1=a", 404, "ask it first"),
    ],
)
def test_problems_are_pages_for_people_and_json_for_programs(page, path, status, said):
    found, text = page.get(path)
    assert status == found
    assert said in seen(text)
    assert text.startswith("<!DOCTYPE html>")
    if not path.startswith("/?"):
        found, text = page.get(path, accept="*/*")
        assert status == found
        assert "type" in json.loads(text)


def test_who_has_not_logged_in_is_asked_to(server):
    nobody = Browser(server.port)
    for path in ("/curator", "/mine", "/v1/answers.csv"):
        status, text = nobody.get(path)
        assert 401 == status
        assert 'type="password"' in text
    status, text = nobody.sent("POST", "/login", {"token": "x"}, **{"Sec-Fetch-Site": "cross-site"})
    assert 403 == status
    assert "Behind a proxy" in seen(text)


def test_a_user_has_twenty_visits_and_ends_nobody_elses(server, monkeypatch):
    """Who logs in too often waits, and the oldest visits of the same user end."""
    bob = Browser(server.port)
    bob.login(server.tokens["bob"])
    many = [Browser(server.port) for _ in range(gate.MOST_VISITS + 2)]
    for one in many:
        one.login(server.tokens["ann"])

    assert "Log out" in bob.get("/")[1]
    assert ["Log out" in one.get("/")[1] for one in many] == [False] * 2 + [True] * gate.MOST_VISITS


def test_logins_have_a_rate(tmp_path, monkeypatch):
    monkeypatch.setattr(gate, "LEAST_READS", 30)
    with served(opened(tmp_path / "a.db"), tmp_path, per_minute=1, clock=lambda: NOW[0]) as server:
        form = urllib.parse.urlencode({"token": server.tokens["ann"]})
        statuses = []
        for _ in range(40):
            line = http.client.HTTPConnection("127.0.0.1", server.port, timeout=FOR_EVER)
            line.request("POST", "/login", form, {"Sec-Fetch-Site": "same-origin", "Accept": "text/html"})
            statuses.append(line.getresponse().status)
            line.close()
        bob = Browser(server.port)
        assert "Log out" in bob.login(server.tokens["bob"])[1]

    assert {303, 429} == set(statuses)


def test_the_login_is_one_that_password_managers_and_consoles_like(server):
    page = Browser(server.port)
    text = page.get("/")[1]
    assert re.search(r'name="username"[^>]*autocomplete="username"', text)
    assert 'rel="icon" href="icon.svg"' in text
    for path in ("/icon.svg", "/favicon.ico"):
        status, icon = page.get(path)
        assert 200 == status
        assert icon.startswith("<svg")
        assert "image/svg+xml" == page.headers["content-type"]


def test_each_attribute_offers_its_own_values(page):
    text = page.get("/?form=form&kind=count&a0=sex&v0=F")[1]
    lists = {
        number: re.findall(r'value="([^"]*)"', inner)
        for number, inner in re.findall(r'<datalist id="values-(\d+)">(.*?)</datalist>', text, re.S)
    }

    assert ["F", "M"] == lists["1"]
    assert ["20", "21"] == lists["0"][:2]
    assert ["a", "b", "missing"] == lists["5"]
    assert 'list="values-1"' in re.search(r'<input id="v0"[^>]*>', text)[0]
    assert "list=" not in re.search(r'<input id="v1"[^>]*>', text)[0]


def test_the_fields_of_a_form_and_of_an_address_are_the_same():
    form = {"form": "form", "kind": "mean", "of": "a&b=c", "v0": "ä;?#", f"w{ROWS - 1}": "x", "other": "y"}

    assert {name: one for name, one in form.items() if name != "other"} == fields_of(query_of(form))


@pytest.fixture(scope="module")
def wishing(tmp_path_factory):
    """A browser on a server of its own: whoever asks exactly pays for it."""
    folder = tmp_path_factory.mktemp("wishing")
    with served(opened(folder / "a.db"), folder, share=1) as running_one:
        found = Browser(running_one.port)
        found.login(running_one.tokens["ann"])
        yield found


def test_how_exact_is_asked_explained_and_paid(fresh):
    page = Browser(fresh.port)
    page.login(fresh.tokens["ann"])
    form = {"kind": "count", "a0": "sex", "o0": "is", "v0": "F", "exact": "2", "unit": "percent"}
    explained = result(page.ask("explain", **form)[1])
    told = result(page.ask(**form)[1])
    price = re.search(r"at most ([\d.]+ %) of the budget, ([\d.]+ %) of your share", explained)

    assert "as exact as you ask: provably within 2 % of all records" in explained
    assert f"It cost you {price[1]} of the budget, {price[2]} of your share" in told
    assert "You asked for it provably within 2 % of all records" in told
    assert ', "within": 0.02' in told
    assert "within=0.02" in told
    again = result(page.ask(**form)[1])
    assert "free" in again
    assert "It cost you" not in again
    assert "known already exactly enough" in result(page.ask("explain", **{**form, "exact": "5"})[1])


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ({"kind": "mean", "of": "age", "exact": "1", "unit": "own"}, "provably within 1"),
        (
            {"kind": "sum", "of": "age", "exact": "2 %", "sure": "usually"},
            "usually within 2 % of the range of age",
        ),
        ({"kind": "median", "of": "age", "exact": "3"}, "provably within 3 % of all records"),
        ({"kind": "table", "of": "sex", "exact": "900", "unit": "own"}, "provably within 900 records"),
        (
            {"form": "sql", "text": "SELECT COUNT(*) FROM t", "exact": ".02", "unit": "own"},
            "within 0.02 records",
        ),
    ],
)
def test_every_kind_of_question_can_be_asked_exactly(wishing, form, said):
    form = {"form": "form", **form}
    assert said in result(wishing.ask("explain", **form)[1])
    told = result(wishing.ask(**form)[1])
    assert f"You asked for it {said}" in told or "within 0.02 records" in told
    assert said in seen(wishing.get("/mine")[1]).replace("\n", " ")


@pytest.mark.parametrize("number", ["x", "0", "-1", "1e99", "%"])
def test_a_number_that_is_none_is_said_beside_its_field(page, number):
    status, text = page.ask(kind="count", exact=number)[:2]
    assert status == 422
    assert "Give a number above 0" in seen(text)


def test_what_a_user_may_not_ask_so_exactly_stands_beside_the_field(fresh):
    with contextlib.closing(Users(fresh.users)) as users:
        users.quota("ann", finest=0.01)
    page = Browser(fresh.port)
    page.login(fresh.tokens["ann"])
    status, text = page.ask(kind="count", a0="sex", v0="F", exact="0.5")[:2]

    assert status == 422
    assert "You may ask for numbers within 1 % of all records" in seen(text)
    assert "Numbers within 1 % of all records are the most exact" in seen(page.get("/")[1])
