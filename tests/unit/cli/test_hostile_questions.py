"""What a question holds beside its words: formulas of spreadsheets, and commands to terminals."""

import csv
import io
import json

import pytest

from onlineic.cli import main

PAID = ["--epsilon", "1", "--delta", "1e-9", "--questions", "20"]


@pytest.fixture
def asked(tmp_path, capsys):
    (tmp_path / "people.csv").write_text("age,note\n" + "1,a\n2,b\n3,a\n" * 500, encoding="utf-8")
    domain = {"age": {"range": [0, 4]}, "note": ["a", "b", "\x1b[2J\u202e"]}
    (tmp_path / "domain.json").write_text(json.dumps(domain), encoding="utf-8")

    def ask(form, *lines):
        (tmp_path / "questions").write_text("\n".join(lines), encoding="utf-8")
        files = ["--csv", str(tmp_path / "people.csv"), "--domain", str(tmp_path / "domain.json")]
        status = main(["ask", *files, *PAID, "--format", form, str(tmp_path / "questions")])
        return status, *capsys.readouterr()

    return ask


def test_no_field_of_a_csv_file_is_a_formula(asked):
    pytest.importorskip("sqlglot", reason="needs the extra sql")
    _, told, _ = asked("csv", "-1 < age", "+2 = age", '{"age": 1}')
    rows = list(csv.DictReader(io.StringIO(told)))

    assert ["'-1 < age", "'+2 = age", '{"age": 1}'] == [row["query"] for row in rows][:3]
    for row in rows:
        assert float(row["value"]) <= 1.0
        assert not any(str(field).startswith(("=", "+", "-", "@", "\t")) for field in row.values())


@pytest.mark.parametrize("form", ["text", "csv", "json"])
def test_what_a_question_holds_commands_no_terminal(asked, form):
    pytest.importorskip("sqlglot", reason="needs the extra sql")
    lines = (
        "age = 1 /* \x1b[31m\x07\u202e */", "\x1b]0;title\x07", '{"note": "\x9b31m"}',
        '{"marginal": ["note"]}', "SELECT COUNT(*) AS \"\x1b[2J\" FROM t GROUP BY note",
    )  # fmt: skip
    _, told, errors = asked(form, *lines)

    for text in (told, errors):
        assert all(sign.isprintable() or sign in "\n\t" for sign in text)
    if form == "json":
        assert any("\x1b[31m" in json.loads(line)["query"] for line in told.splitlines())


def test_tables_of_the_display_show_labels_without_commands():
    from onlineic.display import aligned, shortened, table

    assert "\\x1b[2J\\u202e" == shortened("\x1b[2J\u202e")
    assert "\x1b" not in table(["a"], [["\x1b[2J"]])
    assert "missing" == shortened(None)
    assert "a b" == aligned([shortened("a\nb")], []).strip()
