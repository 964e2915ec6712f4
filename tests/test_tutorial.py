"""Every code block of the tutorial runs, top to bottom, and prints what stands under it; its links exist."""

import contextlib
import io
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
TEXT = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"```python\n(.*?)```\n(?:\n```text\n(.*?)```\n)?", re.S)
NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?")


def words_and_numbers(text):
    """Return the text without its numbers, and the numbers: fits may differ in the last digit elsewhere."""
    return NUMBER.sub("#", text).split(), [float(found.replace(",", "")) for found in NUMBER.findall(text)]


def test_every_block_prints_what_stands_under_it():
    namespace = {}
    for place, (code, expected) in enumerate(BLOCK.findall(TEXT)):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, f"tutorial, block {place}", "exec"), namespace)
        words, numbers = words_and_numbers(expected)
        seen_words, seen = words_and_numbers(printed.getvalue())

        assert words == seen_words
        assert seen == pytest.approx(numbers, rel=0.02, abs=2e-4)
    assert place > 10


def test_links_and_pictures_exist():
    links = re.findall(r"\]\(([^)#:]+)\)", TEXT)

    assert len(links) > 10
    assert [] == [link for link in links if not (ROOT / "docs" / link).exists()]
