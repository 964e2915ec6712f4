"""The page of kinds, the command that drafts a domain, and the kinds themselves agree."""

import math
import re
import sys
from pathlib import Path

import pytest

import onlineic as ic
from onlineic.cli import main
from onlineic.cli.domain import HELP

DOCS = Path(__file__).resolve().parent.parent / "docs"
PAGE = (DOCS / "columns.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| [^|]+ \| (?:`([^`]+)`)? ?\| `([^`]+)` \|$", PAGE, re.M)
KINDS = [row for row in ROWS if row[0]]


def drafted(words, folder):
    path = folder / "t.csv"
    path.write_text("x,other\n1,2\n", encoding="utf-8")
    out = folder / "d.json"
    assert 0 == main(
        [
            "domain",
            "draft",
            str(path),
            "--attribute",
            f"x={words}",
            "--attribute",
            "other=range 0 9",
            "--out",
            str(out),
        ]
    )
    return ic.Domain.from_json(out.read_text(encoding="utf-8"))


@pytest.mark.parametrize(("python", "words"), KINDS, ids=[words for _, words in KINDS])
def test_what_is_written_in_python_is_what_the_words_draft(python, words, tmp_path, capsys):
    kind = eval(python, {"ic": ic, "math": math})

    assert ic.Domain.of(x=kind, other=range(10)) == drafted(words, tmp_path)
    assert "x" in capsys.readouterr().err


def test_every_word_of_the_command_is_on_the_page():
    forms, flags = HELP.split("; then, after ';': ")
    words = {form.split()[0] for form in forms.split(" | ")}
    words |= {flag.split()[0] for flag in re.sub(r"\?, NA", "?", flags).split(", ")}
    told = {part.split()[0] for _, row in ROWS for part in row.split(";")}

    assert words == told


def test_every_kind_of_a_domain_is_on_the_page():
    made = {type(eval(python, {"ic": ic, "math": math})) for python, _ in KINDS}

    assert {ic.domain.Categorical, ic.domain.IntegerRange, ic.domain.Binned, ic.domain.Dates} == made


def test_the_pictures_are_those_that_the_script_draws(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.syspath_prepend(str(DOCS))
    import kinds

    try:
        drawn = {path.name for path in kinds.draw(tmp_path)}
    finally:
        sys.modules.pop("kinds", None)
    assert drawn == set(re.findall(r"\(pictures/([a-z_]+\.png)\)", PAGE))
    assert all((tmp_path / name).stat().st_size > 4_000 for name in drawn)
    assert drawn == {path.name for path in (DOCS / "pictures").glob("kind_*.png")}
