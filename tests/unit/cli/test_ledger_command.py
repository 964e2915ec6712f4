"""`onlineic ledger`, and `onlineic ask` with a ledger: exit statuses, texts and JSON."""

import json

import pytest

from onlineic.cli import main
from onlineic.domain import Domain
from support.ledgers import LABEL, opened, queries, quick_folder


@pytest.fixture
def path():
    with quick_folder() as folder:
        session = opened(folder / "census.db")
        session.answer_many(queries(20))
        session.close()
        yield folder / "census.db"


def test_show_and_verify_say_what_is_spent_and_that_all_holds(path, capsys):
    assert 0 == main(["ledger", "show", str(path)])
    shown = capsys.readouterr().out
    assert 0 == main(["ledger", "verify", str(path)])
    checked = capsys.readouterr().out
    receipt = checked.split("receipt")[1].split()[0]

    assert LABEL in shown
    assert "holds     the chain" in shown
    assert "chain, charges, prices and releases" in checked
    assert 0 == main(["ledger", "verify", str(path), "--receipt", receipt])
    assert 1 == main(["ledger", "verify", str(path), "--receipt", f"9999:{receipt.split(':')[1]}"])
    assert 2 == main(["ledger", "verify", str(path), "--receipt", "9999"])


def test_json_is_one_object_with_exact_amounts(path, capsys):
    assert 0 == main(["ledger", "show", "--json", str(path)])
    shown = json.loads(capsys.readouterr().out)
    assert 0 == main(["ledger", "verify", "--json", str(path)])
    checked = json.loads(capsys.readouterr().out)

    assert shown["spent"] == checked["spent"]
    assert "/" in shown["spent"]
    assert {"reserved", "opened", "closed"} <= {line["kind"] for line in shown["charges"]}
    assert ([], True, 0) == (checked["problems"], checked["replayed"], checked["differing"])


def test_an_export_is_verified_by_others_and_a_torn_one_refused(path, capsys):
    copy = path.with_name("census.jsonl")
    assert 0 == main(["ledger", "export", str(path), "--output", str(copy)])
    assert 1 == main(["ledger", "export", str(path), "--output", str(copy)])  # exists
    capsys.readouterr()
    assert 0 == main(["ledger", "export", str(path)])
    assert copy.read_text() == capsys.readouterr().out
    assert 0 == main(["ledger", "verify", str(copy)])
    copy.write_text(copy.read_text()[:-200])
    assert 1 == main(["ledger", "verify", str(copy)])
    assert 1 == main(["ledger", "verify", str(path.with_name("gone.db"))])
    copy.write_text("nothing")
    assert 1 == main(["ledger", "show", str(copy)])


def test_ask_spends_one_budget_over_many_runs(tmp_path, capsys):
    with quick_folder() as folder:
        (folder / "t.csv").write_text("a\n" + "0\n1\n1\n2\n" * 500)
        (folder / "d.json").write_text('{"a": 4}')
        (folder / "q.txt").write_text('{"a": 1}\n{"a": [1, 2]}\n')
        command = ["ask", "--csv", folder / "t.csv", "--domain", folder / "d.json", "--epsilon", "1"]
        command += ["--ledger", folder / "l.db", "--table", "four", "--format", "json", folder / "q.txt"]
        command = [str(part) for part in command]
        assert 0 == main(command)
        first = capsys.readouterr()
        assert 0 == main(command)
        second = capsys.readouterr()
        values = [[json.loads(line)["value"] for line in one.out.splitlines()] for one in (first, second)]

        assert "every run" not in first.err
        assert values[0] == values[1]
        assert 1 == main([part.replace("four", "five") for part in command])
        assert "table must be 'four'" in capsys.readouterr().err


def test_ask_says_what_to_type_where_an_option_is_another_than_in_the_ledger(tmp_path, capsys):
    domain = Domain.of(age=range(20), sex=["F", "M"])
    (tmp_path / "d.json").write_text(domain.to_json())
    rows = "".join(f"{i % 20},{'FM'[i % 2]},{i}\n" for i in range(2000))
    (tmp_path / "t.csv").write_text("age,sex,id\n" + rows)
    (tmp_path / "q").write_text('{"sex": "F"}')
    files = ["ask", "--csv", f"{tmp_path}/t.csv", "--domain", f"{tmp_path}/d.json", f"{tmp_path}/q"]
    options = {"--epsilon": "1.0", "--delta": "1e-07", "--questions": "20", "--restarts": "3"}

    def asked(**other):
        typed = options | {f"--{name.replace('_', '-')}": text for name, text in other.items()}
        given = [word for name, text in typed.items() if text for word in (name, text)]
        status = main([*files, "--ledger", f"{tmp_path}/l.db", "--table", "t", *given])
        return status, capsys.readouterr().err

    assert 0 == asked()[0]
    for name, text, remedy in (
        ("epsilon", "2", "write --epsilon 1.0"),
        ("delta", "", "write --delta 1e-07"),
        ("questions", "", "write --questions 20"),
        ("restarts", "4", "write --restarts 3"),
        ("max_queries", "77", "leave it out"),
        ("hard_answers", "5", "leave it out"),
        ("person", "id", "leave it out"),
        ("neighbours", "add-remove", "write --neighbours replace-one"),
    ):
        status, told = asked(**{name: text})
        assert 1 == status
        assert f"error: --{name.replace('_', '-')} must be " in told
        assert f"; {remedy}, or open a new ledger (budgets add)." in told
        assert "OnlineIC" not in told.partition("error:")[2]
    assert "table must be 't', as the ledger was opened" in asked(table="u", epsilon="2")[1]
    assert 0 == asked()[0]


def test_persons_are_asked_and_shown_by_the_command_line(tmp_path, capsys):
    lines = [f"p{row % 800},{row % 7},{'FM'[row % 2]}" for row in range(2000)]
    (tmp_path / "visits.csv").write_text("\n".join(["who,day,sex", *lines]))
    (tmp_path / "domain.json").write_text(Domain.of(day=7, sex=["F", "M"]).to_json())
    (tmp_path / "asked.txt").write_text('{"sex": "F"}\n')
    path = str(tmp_path / "one.db")
    asked = ["ask", "--csv", str(tmp_path / "visits.csv"), "--domain", str(tmp_path / "domain.json")]
    asked += ["--epsilon", "1", "--delta", "1e-9", "--ledger", path, "--table", "visits", "--person"]

    assert 0 == main([*asked, "who", str(tmp_path / "asked.txt")])
    said = capsys.readouterr().err
    assert "n=800 persons, protects all rows of a person (by 'who'), weighed to one" in said
    assert 0 == main(["ledger", "show", path])
    shown = capsys.readouterr().out
    assert "800 persons" in shown
    assert "protects  all rows of a person (by 'who')" in shown
    assert "64 rows" not in shown
    assert 0 == main(["ledger", "verify", path, "--json"])
    assert "who" == json.loads(capsys.readouterr().out)["person"]
    assert 2 == main([*asked, "sex", str(tmp_path / "asked.txt")])
    assert "a column that is no attribute" in capsys.readouterr().err
