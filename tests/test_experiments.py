"""The gallery of experiments is complete: script, command, figure, and a stamped result for each."""

import json
import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parent.parent / "experiments"
GALLERY = (FOLDER / "README.md").read_text(encoding="utf-8")
SCRIPTS = sorted(path.stem for path in FOLDER.glob("*.py") if not path.stem.startswith("make_"))


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_gallery_shows_command_figure_and_table_of_every_script(name):
    section = next(part for part in GALLERY.split("\n## ") if f"    python experiments/{name}.py\n" in part)

    assert f"](results/{name}.png)" in section
    assert re.search(r"^\|", section, re.M) or f"](results/{name}.md)" in section
    assert "**Finding.**" in section


@pytest.mark.parametrize("name", SCRIPTS)
def test_every_result_carries_its_settings_seed_versions_and_time(name):
    result = json.loads((FOLDER / "results" / f"{name}.json").read_text(encoding="utf-8"))

    assert isinstance(result["config"]["seed"], int)
    assert {"onlineic", "numpy", "python"} <= result["versions"].keys()
    assert 0 < result.get("processor_seconds", result["wall_seconds"]) < 300
    for ending in (".md", ".png"):
        assert (FOLDER / "results" / f"{name}{ending}").stat().st_size > 100


def test_no_result_is_left_of_a_script_that_is_gone():
    assert set(SCRIPTS) == {path.stem for path in (FOLDER / "results").iterdir()}
