"""The command line: what is printed, where, and with which exit status."""

import csv
import io
import json
import os
import re
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import onlineic
import onlineic as ic
from onlineic.ask.json import parsed_query
from onlineic.cli import ask, main
from onlineic.cli import demo as demo_module
from onlineic.domain import Domain
from onlineic.errors import InvalidQueryError
from onlineic.noise import SimulatedNoise
from onlineic.queries import at_least, below, between, one_of, where
from onlineic.session import OnlineIC
from support.events import FOR_EVER
from support.noise import FAR

DOMAIN = Domain.of(
    age=range(90), sex=["F", "M"], score=Domain.from_json('{"s": {"edges": [0, 1.5, 9]}}').attributes[0]
)
SECRET = 61  # the age of a person whom no message may mention


@pytest.fixture
def table(tmp_path):
    """Options of `ask` for a table of 2,000 people."""
    with open(tmp_path / "people.csv", "w", encoding="utf-8") as file:
        file.write("age,sex,score\n" + "".join(f"{i % 60},{'FM'[i % 2]},1\n" for i in range(1999)))
        file.write(f"{SECRET},F,2\n")
    (tmp_path / "domain.json").write_text(DOMAIN.to_json(), encoding="utf-8")
    return ["ask", "--csv", str(tmp_path / "people.csv"), "--domain", str(tmp_path / "domain.json")]


@pytest.fixture
def queries(tmp_path):
    def write(*lines):
        (tmp_path / "queries.txt").write_text("\n".join(lines), encoding="utf-8")
        return str(tmp_path / "queries.txt")

    return write


PAID = ["--epsilon", "1", "--delta", "1e-9", "--hard-answers", "4"]

# -- ask -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "query"),
    [
        ('{"age": [30, 50], "sex": "F"}', where(age=between(30, 50), sex="F")),
        ('{"age": 17}', where(age=17)),
        ('{"sex": {"one_of": ["F", "M"]}}', where(sex=one_of("F", "M"))),
        ('{"age": {"not": [30, 50]}}', where(age=~between(30, 50))),
        ('{"age": {"not": {"one_of": [1, 2]}}}', where(age=~one_of(1, 2))),
        ('{"sex": {"not": "F"}}', where(sex=~one_of("F"))),
        ('{"age": {"at_least": 65}}', where(age=at_least(65))),
        ('{"age": {"below": 18}}', where(age=below(18))),
        ('{"not": {"age": 3, "sex": "F"}}', ~where(age=3, sex="F")),
        ("{}", where()),
    ],
)
def test_a_line_of_json_is_the_query_it_says(line, query):
    assert query == parsed_query(line, DOMAIN)


def test_an_attribute_named_not_hides_the_complement():
    assert where({"not": 1}) == parsed_query('{"not": 1}', Domain.of({"not": 3}))
    with pytest.raises(InvalidQueryError, match="with 'one_of'"):
        parsed_query('{"not": {"a": 1}}', Domain.of({"not": 3, "a": 2}))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("age = 3", "must be one line of JSON"),
        ("[" * 100_000, "must be one line of JSON"),
        ('{"age": ' + "9" * 5000 + "}", "must be one line of JSON"),
        ("3", "must be a JSON object"),
        ('{"agee": 3}', "did you mean 'age'"),
        ('{"sex": ["F", "M"]}', "no range"),
        ('{"age": [1, 2, 3]}', "two ends"),
        ('{"age": [true, 2]}', "two ends"),
        ('{"age": {"weights": [1]}}', "with 'one_of'"),
        ('{"age": {"not": {"not": {}}}}', "with 'one_of'"),
        ('{"age": [1, 2], "age": 3}', "got one twice"),
        ('{"age": NaN}', "must be finite"),
        ('{"sex": "X"}', "sex must be"),
        ('{"sex": null}', 'declare it "missing": true'),
        ('{"score": [0, 1.5]}', '{"from": 0, "below": 1.5}'),
    ],
)
def test_a_bad_line_is_a_query_error(line, message):
    with pytest.raises(InvalidQueryError, match=re.escape(message)):
        parsed_query(line, DOMAIN).bind(DOMAIN)


def test_answers_go_to_stdout_and_bad_lines_to_stderr_with_their_number(table, queries, capsys):
    file = queries(
        '{"sex": "F"}', "", "nonsense", '{"agee": 1}', '{"not": {"sex": "F"}}', '{"sex": "M"}', "{}"
    )
    status = main([*table, *PAID, "--format", "json", file])
    out, err = capsys.readouterr()
    answers = [json.loads(line) for line in out.splitlines()]

    assert 1 == status
    assert [1, 5, 6, 7] == [answer["line"] for answer in answers]
    assert ["repeat", "repeat"] == [answer["status"] for answer in answers[1:3]]
    assert (1.0, 2000.0, 0.0) == tuple(answers[3][key] for key in ("value", "count", "error_bound"))
    assert ["line 3", "line 4"] == re.findall(r"line \d+", err)
    assert "every run spends this budget anew" in err


def test_a_warning_is_told_as_errors_are_without_a_line_of_code(table, queries, capsys):
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        assert 0 == main([*table, "--epsilon", "1", "--delta", "0.01", queries('{"age": 3}')])
        told = capsys.readouterr().err

    assert "\nonlineic: warning: delta must be below 1/n" in f"\n{told}"
    assert ".py:" not in told


def test_json_writes_null_for_no_bound_and_csv_inf(table, queries, capsys, monkeypatch):
    def numbers_only(*arguments, **options):
        return OnlineIC(*arguments, release="answer", threshold=1e-3, **options)

    monkeypatch.setattr(ask, "OnlineIC", numbers_only)  # without first tables the hard answers run out
    lines = [json.dumps({"age": [low, low + 9]}) for low in range(80)]
    paid = ["--epsilon", "20", "--hard-answers", "1", "--max-queries", "80"]
    assert 0 == main([*table, *paid, "--format", "json", queries(*lines)])
    answers = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert 0 == main([*table, *paid, "--format", "csv", queries(*lines)])
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))

    assert "untested" == answers[-1]["status"] == rows[-1]["status"]
    assert (None, "inf") == (answers[-1]["error_bound"], rows[-1]["error_bound"])
    assert list(ask.FIELDS) == list(rows[0])
    assert {*ask.FIELDS} - {"cell", "bias"} <= {*answers[0]}


def test_text_format_shows_value_bound_count_status_and_budget(table, queries, capsys):
    assert 0 == main([*table, *PAID, queries("{}")])
    assert "1.000000 ± 0.000000         2,000.0 records  easy" in capsys.readouterr().out


def test_queries_come_from_standard_input_without_a_file(table, capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO('{}\n{"sex": "F"}\n'))

    assert 0 == main([*table, *PAID, "--format", "json"])
    assert 2 == len(capsys.readouterr().out.splitlines())


def test_only_what_was_given_reaches_the_session(table, queries, monkeypatch):
    seen = []

    def opened(data, budget, **options):
        seen.append((budget.epsilon, budget.delta, options))
        return OnlineIC(data, budget, hard_answers=1)

    monkeypatch.setattr(ask, "OnlineIC", opened)
    main([*table, "--epsilon", "2", queries()])
    main([*table, "--epsilon", "2", "--certify", "0.3", "--max-queries", "9", "--questions", "5", queries()])

    given = {"certify": 0.3, "max_queries": 9, "questions": 5}
    assert [(2.0, 0.0, {}), (2.0, 0.0, given)] == seen


@pytest.mark.parametrize(
    "arguments",
    [
        ["--eps", "1"],
        ["--epsilon", "x"],
        [],
        ["--epsilon", "1", "--hard-answers", "0"],
        ["--epsilon", "1", "--hard-answers", "3", "--certify", "0.1"],
        ["--epsilon", "1", "--format", "xml"],
    ],
)
def test_arguments_that_cannot_be_parsed_exit_with_2(table, arguments, capsys):
    with pytest.raises(SystemExit) as stop:
        main([*table, *arguments])

    assert 2 == stop.value.code
    assert "usage:" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--epsilon", "-1", "--hard-answers", "3"], "epsilon must be"),
        (["--epsilon", "nan", "--hard-answers", "3"], "epsilon must be"),
        (["--epsilon", "1", "--delta", "2", "--hard-answers", "3"], "delta must be"),
        (["--epsilon", "1", "--certify", "0.0001"], "certify must be"),
    ],
)
def test_parameters_that_cannot_be_met_exit_with_2(table, arguments, message, capsys):
    assert 2 == main([*table, *arguments])
    assert message in capsys.readouterr().err


def test_a_missing_file_is_named(table, capsys):
    table[2] = "nowhere.csv"

    assert 1 == main([*table, *PAID])
    assert "nowhere.csv: No such file" in capsys.readouterr().err


def test_a_table_outside_its_domain_is_quoted_only_on_demand(table, tmp_path, capsys):
    narrow = Domain.of(age=range(60), sex=["F", "M"], score=5)
    (tmp_path / "domain.json").write_text(narrow.to_json(), encoding="utf-8")

    assert 1 == main([*table, *PAID])
    assert str(SECRET) not in capsys.readouterr().err
    assert 1 == main([*table, *PAID, "--show-data-errors"])
    assert str(SECRET) in capsys.readouterr().err


def test_messages_are_the_same_on_neighbouring_tables(table, queries, tmp_path, capsys):
    file = queries(
        "nonsense", '{"agee": 1}', f'{{"age": [{SECRET}, 200]}}', '{"sex": 1}', '{"age": {"one_of": []}}'
    )
    seen = []
    for record in (f"{SECRET},F,2\n", "3,M,0\n"):
        text = (tmp_path / "people.csv").read_text(encoding="utf-8")
        kept = "".join(line + "\n" for line in text.splitlines()[:2000])
        (tmp_path / "people.csv").write_text(kept + record, encoding="utf-8")
        assert 1 == main([*table, *PAID, file])
        seen.append(capsys.readouterr())

    assert seen[0] == seen[1]
    assert 5 == len(re.findall(r"line \d", seen[0].err))


def test_ctrl_c_exits_with_130(table, queries, capsys, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(ask, "_answer_lines", interrupted)

    assert 130 == main([*table, *PAID, queries("{}")])
    assert "interrupted" in capsys.readouterr().err


TABLE = '{"marginal": ["sex", "score"], "where": {"age": {"from": 5, "below": 50}}}'
STATEMENT = "SELECT sex, COUNT(*), AVG(age) FROM t GROUP BY sex"


def test_a_cross_table_is_written_in_every_format(table, queries, capsys):
    told = {}
    for form in ("text", "json", "csv"):
        assert 0 == main([*table, *PAID, "--format", form, queries("# a table", TABLE)])
        told[form] = capsys.readouterr().out
    (line,) = map(json.loads, told["json"].splitlines())
    rows = list(csv.DictReader(io.StringIO(told["csv"])))

    assert 5 == len(told["text"].splitlines())
    assert TABLE[:50] in told["text"]
    assert ((2, 2), TABLE) == (np.shape(line["value"]), line["query"])
    assert {"sex": ["F", "M"], "score": ["[0, 1.5)", "[1.5, 9)"]} == line["labels"]
    assert [("F", "[0, 1.5)"), ("F", "[1.5, 9)"), ("M", "[0, 1.5)"), ("M", "[1.5, 9)")] == [
        tuple(json.loads(row["cell"]).values()) for row in rows
    ]


def test_rates_and_groups_of_what_a_column_makes_are_lines_too(table, queries, capsys):
    lines = [
        '{"share": {"sex": "F"}}',
        '{"share": {"age": {"below": 30}}, "where": {"sex": "F"}, "by": ["sex", {"cut": "age", "at": [20]}]}',
        '{"marginal": [{"cut": "age", "at": [20, 40]}]}',
    ]

    assert 0 == main([*table, *PAID, "--format", "csv", queries(*lines)])

    rows = [*csv.DictReader(io.StringIO(capsys.readouterr().out))]
    assert ["1", *["2"] * 4, *["3"] * 3] == [row["line"] for row in rows]
    cells = [json.loads(row["cell"]) for row in rows[1:]]
    names = [*cells[0]]
    assert {"sex": "F", names[1]: "[0, 20)"} == cells[0]
    assert abs(float(rows[0]["value"]) - 0.5) <= FAR * float(rows[0]["error_bound"])


def test_conditions_and_statements_in_sql_are_questions_too(table, queries, capsys):
    pytest.importorskip("sqlglot")
    file = queries('{"age": [5, 20], "sex": "F"}', "sex = 'F' AND age BETWEEN 5 AND 20", STATEMENT)
    told = {}
    for form in ("text", "json", "csv"):
        assert 0 == main([*table, *PAID, "--format", form, file])
        told[form] = capsys.readouterr().out
    answers = [json.loads(line) for line in told["json"].splitlines()]
    rows = list(csv.DictReader(io.StringIO(told["csv"])))

    assert "repeat" == answers[1]["status"]
    assert ["F", "M"] == answers[2]["columns"]["sex"]
    assert ["COUNT(*)", "AVG(age)"] == [json.loads(row["cell"])["of"] for row in rows[2:4]]
    assert "AVG(age)" in told["text"]


def test_dates_are_asked_in_sql(tmp_path, queries, capsys):
    pytest.importorskip("sqlglot")
    days = [f"2024-01-{1 + i % 31:02}" for i in range(2000)]
    (tmp_path / "days.csv").write_text("\n".join(["day", *days]), encoding="utf-8")
    (tmp_path / "days.json").write_text('{"day": {"dates": ["2024-01-01", "2024-01-31"]}}', encoding="utf-8")
    asked = ["ask", "--csv", str(tmp_path / "days.csv"), "--domain", str(tmp_path / "days.json"), *PAID]
    file = queries(
        "day >= DATE '2024-01-05' AND day < TIMESTAMP '2024-01-09 00:00:00'",
        '{"day": ["2024-01-05", "2024-01-08"]}',
        "SELECT COUNT(*) FROM t WHERE day BETWEEN '2024-01-05' AND '2024-01-08'",
    )
    assert 0 == main([*asked, "--format", "json", file])
    answers = [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    assert ["repeat", "repeat"] == [answer["status"] for answer in answers[1:]]
    assert 1 == main([*asked, queries("day < DATE '2024-02-30'")])
    assert "day must be compared with a date such as '2024-01-01'" in capsys.readouterr().err


def test_no_label_is_lost_where_columns_are_called_like_those_of_the_output(tmp_path, queries, capsys):
    """And the bound of an average over few records is null: JSON has no number for it."""
    pytest.importorskip("sqlglot")
    domain, people = tmp_path / "domain.json", tmp_path / "people.csv"
    domain.write_text('{"line": ["x", "y"], "of": ["p", "q"], "age": {"range": [0, 9]}}')
    people.write_text("line,of,age\n" + "x,p,1\ny,q,2\ny,q,3\n" * 700)
    file = queries(
        "SELECT line, of, COUNT(*) FROM t GROUP BY line, of",
        'SELECT COUNT(*) AS spent, SUM(age) AS "spent error_bound" FROM t',
        "SELECT AVG(age), COUNT(*) FROM t WHERE age = 9 AND line = 'x' AND of = 'q'",
    )
    asked, told = ["ask", "--csv", str(people), "--domain", str(domain)], {}
    for form in ("json", "csv"):
        assert 0 == main([*asked, *PAID, "--format", form, file])
        told[form] = capsys.readouterr().out
    groups, numbers, few = (json.loads(line) for line in told["json"].splitlines())
    cells = [json.loads(row["cell"]) for row in csv.DictReader(io.StringIO(told["csv"]))]

    assert (1, [*"xxyy"], [*"pqpq"]) == (groups["line"], groups["columns"]["line"], groups["columns"]["of"])
    assert {"line": "x", "of": "q", "of_": "COUNT(*)"} == cells[1]
    names = ["spent", "spent error_bound_", "spent expected_error", "spent error_bound"]
    assert names == [*numbers["columns"]][:4]
    assert ([2100.0], [0.0]) == tuple(numbers["columns"][name] for name in ("spent", "spent error_bound_"))
    assert 4000.0 < numbers["columns"]["spent error_bound"][0] < 4400.0
    assert [None] == few["columns"]["AVG(age) error_bound"]
    assert few["columns"]["AVG(age)"] in (
        [None],
        [9.0],
    )  # all that it can be, if anybody is there by the noise


@pytest.mark.parametrize(
    ("line", "remedy"),
    [
        ('{"sex": "Female"}', "did you mean 'F'?"),
        ('{"agee": 3}', "did you mean 'age'?"),
        ('{"score": [0, 1.5]}', '{"from": 0, "below": 1.5}'),
        ('{"age": {"frm": 3}}', '{"from": 20, "below": 65}'),
        ('{"marginal": "sex"}', '{"marginal": [attributes], "where": {..}}'),
        ('{"marginal": ["sexx"]}', "did you mean 'sex'?"),
        ('{"marginal": ["sex"], "were": {}}', '"where": {..}'),
    ],
)
def test_a_remedy_is_in_the_language_of_the_line_and_works(table, queries, capsys, line, remedy):
    assert 1 == main([*table, *PAID, queries(line)])
    assert remedy in capsys.readouterr().err


def test_files_are_opened_and_the_table_is_checked_before_anything_is_paid(
    table, tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr(ask, "OnlineIC", lambda *_, **__: pytest.fail("paid"))

    assert 1 == main([*table, *PAID, str(tmp_path / "nowhere.txt")])
    assert "nowhere.txt: No such file" in capsys.readouterr().err
    (tmp_path / "domain.json").write_text('{"age": 3, "age": 4}', encoding="utf-8")
    assert 2 == main([*table, *PAID])
    assert "domain.json: " in capsys.readouterr().err


class Terminal(io.StringIO):
    def isatty(self):
        return True


def prompted(monkeypatch, *lines, kind=io.StringIO):
    monkeypatch.setattr(sys, "stdin", kind("".join(line + "\n" for line in lines)))


def test_a_prompt_answers_explains_and_goes_on_after_mistakes(table, capsys, monkeypatch):
    asked = '{"age": [5, 20]}'
    prompted(
        monkeypatch,
        "help",
        "left",
        "domain",
        f"explain {asked}",
        asked,
        "explain nonsense",
        "{]",
        asked,
        "quit",
        "{}",
    )

    assert 0 == main([*table, *PAID, "--repl"])
    out, err = capsys.readouterr()
    assert 2 == len(out.splitlines())
    assert "repeat" in out.splitlines()[1]
    assert "A question a line" in err or "One question a line" in err
    assert "0 asked, 0 measured" in err
    assert "of the budget" in err
    assert ["line 6", "line 7"] == re.findall(r"line \d+", err)
    assert 9 == err.count("onlineic> ")


def test_a_prompt_ends_with_its_input(table, capsys, monkeypatch):
    prompted(monkeypatch, "{}")

    assert 0 == main([*table, *PAID, "--repl"])
    assert capsys.readouterr().err.endswith("onlineic> \n")


@pytest.mark.parametrize(("reply", "answers"), [("n", 0), ("", 0), ("y", 1), ("yes", 1)])
def test_a_terminal_is_asked_before_a_large_share_is_risked(table, capsys, monkeypatch, reply, answers):
    def numbers_only(*arguments, **options):
        return OnlineIC(*arguments, release="answer", **options)

    monkeypatch.setattr(ask, "OnlineIC", numbers_only)
    paid = ["--epsilon", "1", "--hard-answers", "1", "--max-queries", "5"]
    prompted(monkeypatch, '{"age": [5, 20]}', reply, kind=Terminal)

    assert 0 == main([*table, *paid, "--repl"])
    out, err = capsys.readouterr()
    assert answers == len(out.splitlines())
    assert "ask it? [y/N]" in err


def test_a_prompt_and_a_file_of_queries_exclude_each_other(table, queries, capsys):
    with pytest.raises(SystemExit) as stop:
        main([*table, *PAID, "--repl", queries("{}")])

    assert 2 == stop.value.code
    assert "--repl must stand alone" in capsys.readouterr().err


def test_the_version_is_told(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["--version"])

    assert 0 == stop.value.code
    assert f"onlineic {onlineic.__version__}\n" == capsys.readouterr().out


def test_a_version_is_told_without_numpy():
    """Which takes most of the time of what imports it."""
    code = (
        "import contextlib, sys; from onlineic.cli.main import main\n"
        "with contextlib.suppress(SystemExit): main(['--version'])\n"
        "print({'numpy', 'attrs', 'scipy'} & {*sys.modules})"
    )
    told = subprocess.run(
        [sys.executable, "-c", code],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(onlineic.__file__).parents[1])},
    )

    assert [f"onlineic {onlineic.__version__}", "set()"] == told.stdout.splitlines()


def run(arguments, **options):
    environment = {**os.environ, "PYTHONPATH": str(Path(onlineic.__file__).parents[1])}
    return subprocess.Popen(
        [sys.executable, "-m", "onlineic", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
        text=True,
        **options,
    )


def test_a_closed_pipe_ends_quietly(table, queries):
    with run([*table, *PAID, queries(*["{}"] * 20_000)]) as process:
        first = process.stdout.readline()
        process.stdout.close()
        err = process.stderr.read()

    assert "1.000000" in first
    assert 141 == process.returncode
    assert ["every run spends this budget anew"] == re.findall("every run.*anew", err)
    assert 1 == len(err.splitlines())


# -- demo ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """A short run with simulated noise: (output, path of the plot)."""
    folder = tmp_path_factory.mktemp("demo")
    with run(["demo", "--queries", "600", "--seed", "3", "--plot", "plot.png"], cwd=folder) as process:
        out, err = process.communicate(timeout=FOR_EVER)

    assert (0, "") == (process.returncode, err)
    return out, folder / "plot.png"


@pytest.mark.slow
def test_demo_shows_the_session_beside_every_baseline(demo):
    out, _ = demo
    table = out[out.index("engine") :]

    for label in (
        "session",
        "per-query Laplace",
        "per-query Gaussian",
        "cached",
        "histogram",
        "noisy tables",
    ):
        assert re.search(
            rf"^.*{label}.* \d\.\d{{5}}\*? +\d\.\d{{5}}\*? +\d\.\d{{5}}\*?$", table, re.MULTILINE
        )
    assert "48,842 records" in out
    assert "NOT PRIVATE" in out
    assert "600 random range and point queries" in out
    assert re.search("Where baselines win|No baseline has a smaller", out)
    assert re.search(r"Textbook mode: alpha = 0\.\d+", out)


def test_demo_numbers_agree_with_each_other(demo):
    out, _ = demo
    session = next(line for line in out.splitlines() if line.startswith("session"))
    hard, easy, repeat, untested = map(int, session.replace(",", "").split()[2:6])
    rms = {
        line[:24].strip(): float(line.replace("*", " ").split()[-2])
        for line in out[out.index("session ") :].splitlines()[:6]
    }
    better = sum(value < rms["session"] for value in rms.values())

    assert 600 == hard + easy + repeat + untested
    assert (f"{better} of 5 have" if better else "No baseline") in " ".join(out.split())


def test_demo_writes_its_plot_or_says_how_to_get_it(demo):
    pytest.importorskip("matplotlib")
    out, plot = demo

    assert b"\x89PNG" == plot.read_bytes()[:4]
    assert "Plot: plot.png" in out


def test_demo_without_matplotlib_says_how_to_get_the_plot(monkeypatch, capsys, tmp_path):
    monkeypatch.setitem(sys.modules, "onlineic.display.pictures", None)  # all that imports it
    monkeypatch.chdir(tmp_path)

    assert 0 == main(["demo", "--queries", "60", "--seed", "0"])
    assert "pip install 'onlineic[plot]'" in capsys.readouterr().out
    assert [] == list(tmp_path.iterdir())


def test_seeded_demo_repeats_and_its_progress_stays_off_a_pipe(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "onlineic.display.pictures", None)  # all that imports it
    seen = []
    for _ in range(2):
        main(["demo", "--queries", "60", "--seed", "5"])
        out, err = capsys.readouterr()
        seen.append([line.split()[:1] + line.split()[-3:] for line in out.splitlines()])
        assert "" == err

    assert seen[0] == seen[1]


def test_progress_is_one_line_on_a_terminal_after_two_seconds(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    now = [100.0]
    monkeypatch.setattr(demo_module.time, "monotonic", lambda: now[0])
    out = Terminal()
    progress = demo_module._Progress(out, 1000, began=100.0)
    session = type("Statistics", (), {"asked": 500, "hard": 3, "hard_left": 2, "spent": 0.6})
    for moment in (101.0, 102.5, 102.6, 102.75):
        now[0] = moment
        progress.show(session)
    progress.clear()

    assert 2 == out.getvalue().count("500 of 1,000 asked, 3 hard, at least 2 left, 60% spent")
    assert "\n" not in out.getvalue()


def test_a_table_in_another_form_is_read_as_it_is_said_to_be_written(tmp_path, queries, capsys):
    domain = Domain.from_json('{"sex": ["F", "é"], "paid": {"edges": [0, 1.5, 9], "missing": true}}')
    (tmp_path / "domain.json").write_text(domain.to_json(), encoding="utf-8")
    rows = "".join(f"{'Fé'[i % 2]};{('1,25', '2,5', 'NA', '?')[i % 4]}\n" for i in range(2000))
    (tmp_path / "people.csv").write_text("sex;paid\n" + rows, encoding="latin-1")
    files = ["ask", "--csv", str(tmp_path / "people.csv"), "--domain", str(tmp_path / "domain.json"), *PAID]
    form = [
        "--delimiter",
        ";",
        "--encoding",
        "latin-1",
        "--decimal",
        ",",
        "--missing",
        "NA",
        "--missing",
        "?",
    ]

    assert 0 == main([*files, *form, "--format", "json", queries('{"paid": null}')])
    assert 0.5 == pytest.approx(json.loads(capsys.readouterr().out)["value"], abs=0.1)
    (tmp_path / "quoted.csv").write_text('"sex";"paid"\n' + rows.replace(";", '";"'), encoding="latin-1")
    for name in ("people.csv", "quoted.csv"):
        for more in ([], ["--show-data-errors"]):
            files[2] = str(tmp_path / name)
            assert 2 == main([*files, *form[2:], *more, queries('{"paid": null}')])
            assert "write --delimiter ';'." in capsys.readouterr().err


def test_answers_about_persons_are_counted_in_persons(tmp_path, queries, capsys):
    rows = [f"{i // 2},{'FM'[i % 2]}" for i in range(2000)]
    (tmp_path / "rows.csv").write_text("\n".join(["id,sex", *rows]), encoding="utf-8")
    (tmp_path / "rows.json").write_text('{"sex": ["F", "M"]}', encoding="utf-8")
    files = ["--csv", str(tmp_path / "rows.csv"), "--domain", str(tmp_path / "rows.json")]

    assert 0 == main(["ask", *files, *PAID, "--person", "id", queries("{}")])
    assert "1,000.0 persons  easy" in capsys.readouterr().out


def test_csv_holds_what_values_in_bins_may_put_off():
    pytest.importorskip("sqlglot", reason="needs the extra sql")
    domain = ic.Domain.of(pay=ic.binned([0, 10, 30]), age=range(5))
    data = ic.PrivateData.from_records({"pay": [5, 20] * 500, "age": [1, 2] * 500}, domain)
    session = ic.OnlineIC(data, ic.Budget(1.0, 1e-6), noise=SimulatedNoise(1))
    found = [
        session.mean("pay"),
        session.sql("SELECT AVG(age), AVG(pay) FROM t"),
        session.sql("SELECT COUNT(*) FROM t"),
    ]

    assert [10.0, 0.0, 10.0, 0.0] == [bias for one in found for *_, bias, _ in ask._numbers(one)]
