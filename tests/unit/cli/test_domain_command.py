"""`onlineic domain draft`: a domain from public knowledge; rows are read on demand alone, and loudly."""

import io
import json
import re
from pathlib import Path

import pytest

import onlineic.domain as domain_wing
from onlineic.cli import main
from onlineic.data import PrivateData
from onlineic.domain import Domain, binned, boolean, categorical, dates, integers, number, optional
from onlineic.errors import PrivateLabelsWarning

DOCS = Path(__file__).parents[3] / "docs"
SECRET = "Zanzibar"
KINDS = ["age=range 17 90; clip", "sex=labels F, M; missing ?, NA", "region=labels North, South; other"]
WRITTEN = Domain.of(
    age=integers(17, 90, clip=True),
    sex=optional(["F", "M"], ["NA", "?"]),
    region=categorical(["North", "South"], other=True),
)


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "people.csv"
    rows = "".join(f"{17 + i % 60},{'FM'[i % 2]},{SECRET if i == 7 else 'North'}\n" for i in range(100))
    path.write_text("age,sex,region\n" + rows, encoding="utf-8")
    return str(path)


def draft(*arguments):
    return main(["domain", "draft", *arguments])


def options(kinds):
    return [part for kind in kinds for part in ("--attribute", kind)]


def test_a_domain_is_drafted_from_options(table, capsys):
    assert 0 == draft(table, *options(KINDS))
    told = capsys.readouterr()

    assert WRITTEN == Domain.from_json(told.out)
    assert repr(WRITTEN) in told.err
    assert SECRET not in told.out + told.err


def test_kinds_are_asked_on_a_terminal_until_they_can_be_read(table, capsys, monkeypatch, tmp_path):
    answers = [
        "range 17",
        "range 90 17",
        "range 17 90; clip",
        "labels F, M; missing ?, NA",
        "labels North, South; other",
    ]
    monkeypatch.setattr("sys.stdin", Terminal("\n".join(answers) + "\n"))
    out = tmp_path / "domain.json"

    assert 0 == draft(table, "--out", str(out))
    told = capsys.readouterr()
    assert ("", WRITTEN) == (told.out, Domain.from_json(out.read_text(encoding="utf-8")))
    assert 3 == told.err.count("age? ")
    assert 1 == draft(table, "--out", str(out), *options(KINDS))  # what is there stays
    assert "File exists" in capsys.readouterr().err


def test_without_answers_and_a_terminal_it_is_refused_with_the_remedy(table, capsys, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO())

    assert 2 == draft(table, *options(KINDS[:1]))
    told = capsys.readouterr()
    assert "got none for sex, region; write --attribute sex=KIND --attribute region=KIND, with" in told.err
    assert "" == told.out
    monkeypatch.setattr("sys.stdin", Terminal())
    assert 2 == draft(table)
    assert "age must have a kind, got the end of the input" in capsys.readouterr().err


def test_labels_without_commas_are_not_taken_for_one(table, tmp_path, capsys):
    given = ["sex=labels Female Male", "region=labels N, S", "age=range 17 90"]
    assert 2 == draft(table, *options(given), "--out", str(tmp_path / "d.json"))
    told = capsys.readouterr().err
    assert "got the one label 'Female Male'; write labels Female, Male, or if it is one label" in told
    assert not (tmp_path / "d.json").exists()
    one = told.split("if it is one label ")[1].rstrip(".\n")
    assert 0 == draft(table, *options([f"sex={one}", *given[1:]]))
    assert '["Female Male"]' in capsys.readouterr().out


def test_rows_are_read_on_demand_alone_and_the_file_says_so(table, capsys):
    assert 0 == draft(table, "--from-rows", "region", "age", *options(["sex=skip"]))
    told = capsys.readouterr()

    assert "NOT PRIVATE: labels were read from the private table: region, age" in told.err
    written = json.loads(told.out)
    assert ["NOT PRIVATE" in kind for kind in written.values()] == [True, True]
    assert [17, 76] == written["age"]["range"]
    with pytest.warns(PrivateLabelsWarning, match="labels of age, region"):
        assert Domain.of(age=range(17, 77), region=["North", SECRET]) == Domain.from_json(told.out)
    assert 0 == draft(table, "--from-rows", "age", "--from-rows", "region", *options(["sex=skip"]))
    assert 2 == capsys.readouterr().out.count("NOT PRIVATE")
    assert 0 == draft(table, "--from-rows")
    assert 3 == capsys.readouterr().out.count("NOT PRIVATE")


def test_every_kind_can_be_written(tmp_path, capsys):
    path = tmp_path / "t.csv"
    path.write_text("a;b;c;d=e;f\n", encoding="utf-8")
    kinds = [
        "a=bins -inf 0 1.5 inf; optional", "b=bins 0 10; whole; clip",
        "c=dates 2020-01 2024-12 month; missing ?",
        'd=e={"labels": [1, 2], "other": true}', "f=dates 2024-01-01 2024-12-31",
    ]  # fmt: skip
    expected = Domain.of(
        {
            "a": optional(binned([float("-inf"), 0, 1.5, float("inf")])),
            "b": binned([0, 10], integer=True, clip=True),
            "c": optional(dates("2020-01", "2024-12", "month"), ["?"]),
            "d=e": categorical([1, 2], other=True),
            "f": dates("2024-01-01", "2024-12-31"),
        }
    )

    assert 0 == draft(str(path), "--delimiter", ";", *options(kinds))
    assert expected == Domain.from_json(capsys.readouterr().out)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--attribute", "aeg=skip"], "--attribute must name a column, got 'aeg'; did you mean 'age'"),
        (["--from-rows", "regio"], "--from-rows must name a column, got 'regio'; did you mean 'region'"),
        (["--attribute", "age"], "--attribute must read NAME=KIND"),
        (["--attribute", "age=numbers"], "age must have a kind, got 'numbers'"),
        (["--attribute", "age=range 1 x"], "age must give 'range' as"),
        (["--attribute", "age=range 1 5; closed"], "got 'closed'"),
        (["--attribute", "age=number 0 9 optional; clip"], "write number 0 9; optional; clip."),
        (["--attribute", "age=optional range 1 5"], "age must have ';' before 'optional', got"),
        (["--attribute", "age={x"], "age must be valid JSON"),
        (["--attribute", 'age={"range": [0, ' + "9" * 5000 + "]}"], "age must be valid JSON"),
        (["--attribute", "age=range 0 " + "9" * 5000], "age must give 'range' as"),
        (["--attribute", "age=dates 2020 x"], "must be a date"),
        (["--attribute", "age=labels a, a"], "labels must be distinct"),
        (["--delimiter", "::"], "delimiter must be one character"),
        (["--encoding", "nonsense"], "encoding must be"),
        (["--from-rows", "sex"], "got none for age, region"),
        ([f"--attribute={name}=skip" for name in ("age", "sex", "region")], "one or more attributes"),
    ],
)
def test_what_cannot_be_used_is_refused_by_name(table, arguments, message, capsys, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO())

    assert 2 == draft(table, *arguments)
    told = capsys.readouterr()
    assert ("", True) == (told.out, message in told.err)


@pytest.mark.parametrize("text", ["", "a,a\n1,2\n", "a,\n1,2\n", b"a,\xff\n"])
def test_headers_that_cannot_be_used_are_refused(tmp_path, text, capsys):
    path = tmp_path / "t.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())

    assert 1 == draft(str(path))
    assert "header" in capsys.readouterr().err


def test_columns_of_too_many_labels_are_not_taken_from_rows(tmp_path, capsys):
    path = tmp_path / "t.csv"
    path.write_text("a\n" + "".join(f"x{i}\n" for i in range(1001)), encoding="utf-8")

    assert 2 == draft(str(path), "--from-rows")
    assert "a must have 1 to 1,000 labels" in capsys.readouterr().err


@pytest.mark.parametrize(
    "text", [b"a,b\n" + b"1,2\n" * 9999 + b"1,\xff\n", b'a,b\n1,"x\n', b"a,b\n1," + b"x" * 200_000 + b"\n"]
)
def test_rows_that_cannot_be_read_are_refused(tmp_path, text, capsys):
    path = tmp_path / "t.csv"
    path.write_bytes(text)

    assert 1 == draft(str(path), "--from-rows")
    assert "the file must be a CSV table" in capsys.readouterr().err


def test_a_domain_file_of_another_encoding_is_refused(tmp_path, capsys):
    """A label read with other letters is none of the table: its records would be in the cell of others."""
    (tmp_path / "t.csv").write_text("a\ncafé\n", encoding="utf-8")
    (tmp_path / "d.json").write_text('{"a": {"labels": ["café"], "other": true}}', encoding="latin-1")
    (tmp_path / "q.txt").write_text("", encoding="utf-8")
    files = ["--csv", str(tmp_path / "t.csv"), "--domain", str(tmp_path / "d.json")]

    assert 2 == main(["ask", *files, "--epsilon", "1", str(tmp_path / "q.txt")])
    assert "d.json: a domain file must be in UTF-8" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["age;sex\n30;F\n", '"age";"sex"\n30;"F"\n', "age\tsex\n30\tF\n"])
@pytest.mark.parametrize("more", [["--attribute", "age=range 17 90"], ["--from-rows"], []])
def test_another_delimiter_is_named(tmp_path, capsys, text, more):
    path = tmp_path / "other.csv"
    path.write_text(text)
    mark = r"\t" if "\t" in text else ";"

    assert 2 == draft(str(path), *more)
    assert f"write --delimiter '{mark}'." in capsys.readouterr().err
    assert 0 == draft(str(path), "--delimiter", mark, *options(["age=range 17 90", "sex=labels F, M"]))


def test_a_name_that_holds_a_delimiter_is_a_name(tmp_path, capsys):
    path = tmp_path / "other.csv"
    path.write_text("Q1: age\n30\n")

    assert 0 == draft(str(path), "--attribute", "Q1: age=range 17 90")
    assert Domain.of({"Q1: age": range(17, 91)}) == Domain.from_json(capsys.readouterr().out)


def test_every_kind_that_the_guides_recommend_is_drafted(tmp_path, capsys):
    """What a word of the draft makes is what the guides write in Python."""
    path = tmp_path / "t.csv"
    path.write_text("a\n", encoding="utf-8")
    words = {
        "number": ("number 0 50000 16", number(0, 50_000, bins=16)),
        "boolean": ("boolean yes no", boolean("yes", "no")),
        "binned": ("bins 0 20 35 50; clip", binned([0, 20, 35, 50], clip=True)),
        "integers": ("range 17 90; round", integers(17, 90, round=True)),
        "categorical": ("labels F, M; other", categorical(["F", "M"], other=True)),
        "dates": ("dates 2020-01 2024-12 month; zone Europe/Paris",
                  dates("2020-01", "2024-12", by="month", zone="Europe/Paris")),
        "optional": ("labels F, M; others missing; optional", optional(["F", "M"], others="missing")),
    }  # fmt: skip
    guides = "".join((DOCS / name).read_text(encoding="utf-8") for name in ("bins.md", "curators.md"))
    kinds = {name for name in domain_wing.__all__ if callable(getattr(domain_wing, name)) and name.islower()}

    assert {name for name in re.findall(r"\b([a-z]+)\(", guides) if name in kinds} == words.keys()
    for said, kind in words.values():
        assert 0 == draft(str(path), "--attribute", f"a={said}")
        assert Domain.of(a=kind) == Domain.from_json(capsys.readouterr().out)
    assert 0 == draft(str(path), "--attribute", "a=number 0 50000")
    assert Domain.of(a=number(0, 50_000)) == Domain.from_json(capsys.readouterr().out)
    assert 2 == draft(str(path), "--attribute", "a=number 9 0")
    assert "a: number must have two finite ends that rise, got 9 and 0" in capsys.readouterr().err


def test_a_parquet_file_is_drafted_from_its_names_and_on_demand_its_rows(tmp_path, capsys):
    parquet = pytest.importorskip("pyarrow.parquet")
    pytest.importorskip("narwhals")
    import pyarrow

    path = tmp_path / "t.parquet"
    parquet.write_table(pyarrow.table({"age": [30, 31], "sex": ["F", None]}), path)

    assert 0 == draft(str(path), "--attribute", "age=range 17 90", "--from-rows", "sex")
    written = json.loads(capsys.readouterr().out)
    assert {"range": [17, 90]} == written["age"]
    assert (["F"], True) == (written["sex"]["labels"], written["sex"]["missing"])
    assert 2 == draft(str(path), "--delimiter", ";")
    assert "must be left out for a Parquet file" in capsys.readouterr().err


def test_texts_for_no_value_are_gaps_of_a_column_from_rows(tmp_path, capsys):
    path = tmp_path / "t.csv"
    path.write_text("sex,n\nF,2\nNA,1\n")

    assert 0 == draft(str(path), "--missing", "NA", "--count", "n", "--from-rows")
    written = json.loads(capsys.readouterr().out)
    assert ["sex"] == [*written]
    assert (["F"], ["NA"]) == (written["sex"]["labels"], written["sex"]["missing"])


AWKWARD = """sold,price,share,when,day,from,code
18:05:28,"$1,234.50",45%,Jan-2024,2024-03-05T06:00:42Z,1711839600,x17
07:00:00,$3,3.5%,Feb-2023,2024-03-06T06:00:42Z,1711839601,x18
"""


def test_forms_of_values_are_proposed_of_rows_that_the_curator_lets_it_look_at(tmp_path, capsys):
    path = tmp_path / "t.csv"
    path.write_text(AWKWARD, encoding="utf-8")

    assert 0 == draft(str(path), "--from-rows")
    text, told = capsys.readouterr()
    kinds = {name: set(kind) for name, kind in json.loads(text).items()}
    with pytest.warns(PrivateLabelsWarning):
        domain = Domain.from_json(text)
    assert "NOT PRIVATE" in told
    assert ["hours"] == [json.loads(text)["sold"]["clock"]]
    assert [["$1,234.5"], ["1234.5%"]] == [json.loads(text)[name]["written"] for name in ("price", "share")]
    assert ["%b-%Y"] == json.loads(text)["when"]["formats"]
    assert "UTC" == json.loads(text)["day"]["zone"]
    assert {"labels", "NOT PRIVATE"} == kinds["from"] == kinds["code"]  # few of them: codes as well
    assert 2 == PrivateData.from_csv(path, domain).n


def test_a_text_that_may_be_read_in_two_ways_is_left_to_the_curator(tmp_path, capsys):
    path = tmp_path / "t.csv"
    path.write_text('a\n"1,234"\n"2,500"\n', encoding="utf-8")

    assert 2 == draft(str(path), "--from-rows")
    told = capsys.readouterr().err
    assert "a must be read in one way, got texts that fit written='1234,5' and written='1,234'" in told
    assert 0 == draft(str(path), "--attribute", "a=number 0 5000; written 1,234")
    assert ["1,234"] == json.loads(capsys.readouterr().out)["a"]["written"]


def test_numbers_that_may_be_seconds_are_told_so(tmp_path, capsys):
    path = tmp_path / "t.csv"
    path.write_text("a\n" + "".join(f"{1711839600 + 7 * row}\n" for row in range(30)), encoding="utf-8")

    assert 0 == draft(str(path), "--from-rows")
    assert "a: read as it stands; it may be meant as epoch='s'." in capsys.readouterr().err


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ("number 0 24 24; clock hours", {"clock": "hours"}),
        ("range 0 99; written 1234%; written 1234", {"written": ["1234%", "1234"]}),
        ("dates 2020 2024 month; format %b-%Y; format %B %Y; zone UTC", {"formats": ["%b-%Y", "%B %Y"]}),
        ("dates 2020 2024 month; epoch s", {"epoch": "s"}),
    ],
)
def test_forms_of_values_are_said_in_words(tmp_path, capsys, answer, kind):
    path = tmp_path / "t.csv"
    path.write_text("a\n1\n", encoding="utf-8")

    assert 0 == draft(str(path), "--attribute", f"a={answer}")
    assert kind.items() <= json.loads(capsys.readouterr().out)["a"].items()
