"""The rows of docs/reproduction.md that need no outside data come out again, to the character."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from support.events import FOR_EVER

FOLDER = Path(__file__).resolve().parent.parent / "experiments"
AGAIN = """
import json, sys
sys.path.insert(0, sys.argv[1])
import reproduction as made
from study.outcome import seeds

config = made.Config()
drawn = seeds(config.seed, 8)
rows = [*made.notebook(config, drawn[0]), *made.laplace_in_r(config, drawn[1]), *made.translation(config)]
print(json.dumps([*rows, *made.lecture(config, drawn[6])]))
"""


@pytest.mark.slow
def test_rows_without_outside_data_are_made_again_as_they_stand():
    stored = json.loads((FOLDER / "results" / "reproduction.json").read_text(encoding="utf-8"))["rows"]
    done = subprocess.run(
        [sys.executable, "-c", AGAIN, str(FOLDER)],
        capture_output=True,
        text=True,
        timeout=FOR_EVER,
        check=True,
    )

    assert [row for row in stored if row["text"] != "tutorial"] == json.loads(done.stdout)
