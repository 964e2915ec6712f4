"""What a command, the page and HTTP refuse is told without Python: nobody writes it there."""

import http.client
import json
import re

import numpy as np
import pytest

import onlineic as ic
from onlineic.cli import main
from onlineic.noise import SimulatedNoise
from onlineic.service.forms import in_plain_words
from support.events import FOR_EVER
from support.served import served

# calls but those of SQL, names of the package, keywords with a value to be written, Python's constants
PYTHON = re.compile(
    r"\b(?:[a-z][a-z_.]*|[A-Z]\w*[a-z]\w*)\((?![ s])|\bsession\.|\bic\.|\bonlineic\.|\bfrom_[a-z]+\b"
    r"|\bparams\b|(?:write|declare|give|with|lower|raise|name its) (?:[a-z_]+=|[a-z]+_[a-z_]+)|\bin Python\b"
    r"|\bspan\b|\bOnlineIC\b|\bNone\b"
)
DOMAIN = ic.Domain.of(
    age=ic.integers(17, 90, clip=True),
    sex=["F", "M"],
    pay=ic.binned([0, 10, 20, float("inf")]),
    cost=ic.number(0, 1000, bins=2),
    seen=ic.dates("2024-01-01", "2024-02-29"),
    month=ic.dates("2024-01", "2024-02", by="month"),
    gap=ic.optional(["a", "b"]),
    smokes=[True, False],
)
LINES = r"""
{"agee": 1}
{"age": 200}
{"age": [1]}
{"age": {"from": 1, "to": 2, "below": 3}}
{"age": null}
{"age": {"one_of": [[1]]}}
{"age": {"x": 3}}
{"sex": [1, 2]}
{"sex": {"from": "F"}}
{"sex": "f"}
{"sex": {"one_of": []}}
{"sex": null}
{"pay": [3, 7]}
{"pay": 10}
{"pay": 30}
{"pay": {"from": 3, "below": 12}}
{"cost": 17}
{"cost": {"one_of": [1, 2]}}
{"seen": "2024"}
{"seen": "2024-02"}
{"seen": ["2024-02", "x"]}
{"seen": 3}
{"month": "2024-02-05"}
{"smokes": 1}
{"smokes": "true"}
{"marginal": []}
{"marginal": ["age", "age"]}
{"marginal": ["age"], "where": 3}
{"marginal": [{"cut": "sex", "at": [1]}]}
{"marginal": [{"date_trunc": "month", "of": "age"}]}
{"share": {"sex": "F"}, "by": [{"cut": "cost", "at": [17]}]}
{"share": 3}
{"or": []}
{"not": 3}
[]
age > 'x'
agee = 1
sex = 'f'
sex > 'F'
pay > 3
pay BETWEEN 0 AND 15
cost > 17
seen > 3
seen = '05.03.2024'
seen < month
seen = :x
age = ?
smokes = 'yes'
gap = 'c'
age > pay
nonsense
SELECT * FROM t
SELECT COUNT(*) FROM u
SELECT AVG(sex) FROM t
SELECT AVG(pay) FROM t
SELECT SUM(seen) FROM t
SELECT AVG(month) FROM t
SELECT MEDIAN(sex) FROM t
SELECT MAX(age) FROM t
SELECT QUANTILE(age, 5) FROM t
SELECT MODE(age) FROM t
SELECT COUNT(DISTINCT sex) FROM t
SELECT STDDEV(seen) FROM t
SELECT VAR_POP(sex) FROM t
SELECT AVG(CASE WHEN sex = 'F' THEN 1 END) FROM t
SELECT COUNT(age > 3) FROM t
SELECT FLOOR(cost / 7), AVG(age) FROM t GROUP BY 1
SELECT EXTRACT(YEAR FROM age) AS y, COUNT(*) FROM t GROUP BY y
SELECT COUNT(*) % 3 FROM t
SELECT COUNT(*) FROM t WHERE age = :x
SELECT COUNT(*) FROM t JOIN u
SELECT COUNT(*) / '2' FROM t
SELECT AVG(age) FROM t WHERE gap = 'b'
SELECT
DELETE FROM t
""".strip().splitlines()


def columns():
    chance = np.random.default_rng(1)
    many = 400
    month = chance.integers(1, 3, many)
    return {
        "age": chance.integers(17, 90, many).tolist(),
        "sex": ["FM"[one] for one in chance.integers(0, 2, many)],
        "pay": chance.integers(0, 50, many).tolist(),
        "cost": chance.integers(0, 1000, many).tolist(),
        "seen": [f"2024-0{one}-11" for one in month],
        "month": [f"2024-0{one}" for one in month],
        "gap": ["a"] * many,
        "smokes": [bool(one) for one in chance.integers(0, 2, many)],
    }


@pytest.fixture
def files(tmp_path):
    held = columns()
    rows = [",".join(map(str, row)) for row in zip(*held.values(), strict=True)]
    (tmp_path / "t.csv").write_text("\n".join([",".join(held), *rows, ""]), encoding="utf-8")
    (tmp_path / "d.json").write_text(DOMAIN.to_json(), encoding="utf-8")
    (tmp_path / "lines").write_text("\n".join(LINES), encoding="utf-8")
    return ["--csv", str(tmp_path / "t.csv"), "--domain", str(tmp_path / "d.json")]


def in_python(told):
    return [line for line in told if PYTHON.search(re.sub(r"^onlineic: |got '[^']*'", "", line))]


def test_lines_are_refused_in_their_own_languages(files, tmp_path, capsys):
    pytest.importorskip("sqlglot")
    assert 1 == main(["ask", *files, "--epsilon", "1", str(tmp_path / "lines")])
    told = [line for line in capsys.readouterr().err.splitlines() if ": line " in line]

    assert len(told) >= len(LINES) - 5
    assert [] == in_python(told)


@pytest.mark.parametrize(
    ("options", "remedy"),
    [
        (["--epsilon", "1e9"], "got epsilon=1000000000.0; lower it."),
        (["--epsilon", "1e-7"], "delta=0; raise epsilon."),
        (["--epsilon", "1", "--certify", "1e-9"], "or give --hard-answers); raise epsilon."),
        (["--epsilon", "1", "--delimiter", ";;"], r"write --delimiter ';' or '\t'."),
        (["--epsilon", "1", "--person", "age"], "--person must name a column that is no attribute"),
        (["--epsilon", "1", "--count", "age", "--person", "id"], "--count must be left out with --person"),
    ],
)
def test_options_are_refused_by_their_names(files, capsys, options, remedy):
    assert 2 == main(["ask", *files, *options, "/dev/null"])
    told = capsys.readouterr().err

    assert remedy in told
    assert [] == in_python(told.splitlines())


def test_the_report_on_a_table_tells_what_to_write_in_the_domain_file(files, tmp_path, capsys):
    text = (tmp_path / "t.csv").read_text(encoding="utf-8").replace(",F,", ",f,", 3).replace(",M,", ",?,", 2)
    (tmp_path / "t.csv").write_text(text.replace("2024-01-11", "2023-01-11", 1), encoding="utf-8")

    assert 1 == main(["ask", *files, "--epsilon", "1", "--show-data-errors", "/dev/null"])
    told = capsys.readouterr().err
    for remedy in ('"missing": ["?"]', '"synonyms": {"f": "F"}', 'declare "other": true', '"clip": true'):
        assert remedy in told
    assert [] == in_python(told.splitlines())


def test_a_server_refuses_without_python(tmp_path):
    pytest.importorskip("sqlglot")
    data = ic.PrivateData.from_records(columns(), DOMAIN)
    session = ic.OnlineIC(data, ic.Budget(1.0), noise=SimulatedNoise(1), ledger=None)
    with served(session, tmp_path, ("ann",)) as server:
        line = http.client.HTTPConnection("127.0.0.1", server.port, timeout=FOR_EVER)

        def sent(path, body):
            line.request("POST", path, json.dumps(body), {"Authorization": f"Bearer {server.tokens['ann']}"})
            return json.loads(line.getresponse().read())

        asked = [json.loads(one) if one[0] in "{[" else one for one in LINES if not one.startswith("SELECT")]
        told = [one["error"]["message"] for one in sent("/v1/answers", {"questions": asked})["answers"]
                if "error" in one]  # fmt: skip
        told += [sent("/v1/sql", {"sql": one}).get("detail", "") for one in LINES if one.startswith("SELECT")]
        line.close()

    assert len([one for one in told if one]) >= len(LINES) - 5
    assert [] == in_python(told)


def test_so_does_the_page():
    assert "MEDIAN; add it up." == in_plain_words("MEDIAN; add it up; in Python write session.median('col').")
    assert "A must be x." == in_plain_words("a must be x; write where(a=below(3)).")
