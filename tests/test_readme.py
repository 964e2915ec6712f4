"""Every code block of the README runs, in one namespace, top to bottom; its commands exist; it is short."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", TEXT, re.S)


@pytest.mark.filterwarnings("ignore::onlineic.errors.BudgetsAddWarning")  # a tour of one table; it says so
def test_every_block_runs(capsys):
    namespace = {}
    for block in BLOCKS:
        exec(compile(block, "README.md", "exec"), namespace)
    printed = capsys.readouterr().out

    assert 2 == len(BLOCKS)
    assert "±" in printed
    assert "max entropy" in printed
    assert namespace["session"].statistics().private
    assert 0.0 < namespace["book"].statistics().alpha


def test_the_readme_is_short_and_its_links_exist():
    links = re.findall(r"\]\(([^)#:]+)\)", TEXT)

    assert len(TEXT.splitlines()) < 150
    assert links
    assert [] == [link for link in links if not (ROOT / link).exists()]


@pytest.mark.parametrize("target", sorted(set(re.findall(r"^    make (\w+)", TEXT, re.M))))
def test_every_make_command_is_a_target(target):
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M)


def test_no_placeholder_is_left():
    assert "RESULTS" not in TEXT
