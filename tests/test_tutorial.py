"""Every code block of the tutorials runs, top to bottom, and prints what stands under it; links exist."""

import contextlib
import io
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
TEXTS = {
    name: (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8") for name in ("tutorial", "joint_privacy")
}
BLOCK = re.compile(r"```python\n(.*?)```\n(?:\n```text\n(.*?)```\n)?", re.S)
NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?")


def words_and_numbers(text):
    """Return the text without its numbers, and the numbers: fits may differ in the last digit elsewhere."""
    return NUMBER.sub("#", text).split(), [float(found.replace(",", "")) for found in NUMBER.findall(text)]


@pytest.mark.parametrize(("name", "blocks"), [("tutorial", 12), ("joint_privacy", 4)])
def test_every_block_prints_what_stands_under_it(name, blocks):
    namespace = {}
    for place, (code, expected) in enumerate(BLOCK.findall(TEXTS[name])):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, f"{name}, block {place}", "exec"), namespace)
        words, numbers = words_and_numbers(expected)
        seen_words, seen = words_and_numbers(printed.getvalue())

        assert words == seen_words
        assert seen == pytest.approx(numbers, rel=0.02, abs=2e-4)
    assert place >= blocks - 1


def test_links_and_pictures_exist():
    links = re.findall(r"\]\(([^)#:]+)\)", TEXTS["tutorial"])

    assert len(links) > 10
    assert [] == [link for link in links if not (ROOT / "docs" / link).exists()]
