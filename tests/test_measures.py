"""What `make measures` counts, on small examples."""

import importlib.util
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def measures():
    spec = importlib.util.spec_from_file_location("measures", ROOT / "benchmarks" / "measures.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


TEXT = '''"""A module.

Of two lines.
"""

# a comment
LARGEST = 2**62
FEW, SHARE = 16, 0.1
NOTHING = 0
NAME = "seven"


class Rule:
    """A rule."""

    share: float = 0.5
    """An attribute."""
    most: int = 1
    name: str = "x"

    def answer(self) -> str:
        """Return it."""
        return """text
        of two lines"""
'''


def test_each_line_is_code_docstring_comment_or_blank(measures):
    found = measures.lines_of(TEXT)

    assert {"lines": 24, "lines of code": 11, "lines of docstrings": 7, "lines of comments": 1} == found


def test_numbers_are_those_of_constants_and_defaults_beyond_zero_and_one(measures):
    assert ["LARGEST", "FEW", "SHARE", "Rule.share"] == measures.chosen(TEXT)


def test_limits_of_work_parts_of_beta_and_settings_were_found_by_no_experiment(measures):
    text = "MOST, STEPS = 200, 150\nALL_EASY, KEPT = 0.9, 0.1\nclass Settings:\n    beta: float = 0.05\n"

    assert ["KEPT"] == measures.tried(text)
    rules = [*(ROOT / "onlineic" / "plan").glob("*.py"), *(ROOT / "onlineic" / "interactions").glob("*.py")]
    found = [name for path in rules for name in measures.tried(path.read_text(encoding="utf-8"))]
    assert {"DemandPurchases.rent", "DemandPurchases.single", "OF_TWO", "BELIEVED"} <= {*found}


def test_sizes_add_up_over_the_files_of_a_folder(measures, tmp_path):
    (tmp_path / "inner").mkdir()
    for place in ("one.py", "inner/two.py"):
        (tmp_path / place).write_text(TEXT, encoding="utf-8")
    (tmp_path / "three.md").write_text("text", encoding="utf-8")
    found = measures.sizes(tmp_path)

    assert (2, 48, 22) == (found["files"], found["lines"], found["lines of code"])


def test_private_names_that_a_test_defines_itself_are_not_read(measures, tmp_path):
    for place, text in {
        "onlineic/wing/a.py": "_hidden = 1\nclass A:\n    def __init__(self): self._held = 2\n",
        "tests/test_a.py": "from onlineic.wing.a import _hidden\nprint(a._held, a._held, a._unknown)\n",
        "tests/test_b.py": "_held = 1\nprint(a._held)\n",
    }.items():
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).write_text(text, encoding="utf-8")

    assert 3 == measures.private_reads(tmp_path)


def test_only_calls_of_the_package_are_walked(measures):
    import onlineic as ic

    calls, files, budget = measures.walked(lambda: ic.Budget(1.0))

    assert ic.Budget(1.0) == budget
    assert 1 <= files <= calls
    assert (0, 0, 2) == measures.walked(lambda: max(1, len("to")))


def test_answers_of_each_kind_are_found(measures):
    found = measures.walks()

    assert found["repeat answer: calls"] < found["easy answer: calls"] < found["hard answer: calls"]
    assert found["repeat answer: files"] < found["easy answer: files"] < found["hard answer: files"]
    assert found["easy answer: microseconds"] > 0


def test_the_least_of_the_rounds_counts_and_checkouts_take_turns(measures, monkeypatch):
    ran = []

    def run(root, part):
        ran.append((root.name, part))
        return {part: {"old": 10, "new": 5}[root.name] - len(ran) % 3}

    monkeypatch.setattr(measures, "run", run)
    monkeypatch.setattr(measures, "still", lambda root: {"onlineic: lines": 8 if root.name == "old" else 4})
    monkeypatch.setattr(measures, "RUNS", {"walks": None})
    found = measures.measured([Path("old"), Path("new")], rounds=2)

    assert [("old", "walks"), ("new", "walks")] * 2 == ran
    assert [{"onlineic: lines": 8, "walks": 9}, {"onlineic: lines": 4, "walks": 3}] == found
    assert [
        "| measure | before | now | difference | ratio |",
        "|---|---|---|---|---|",
        "| onlineic: lines | 8 | 4 | -4 | 0.50 |",
        "| walks | 9 | 3 | -6 | 0.33 |",
    ] == [*measures.written(["before", "now"], found)]
    assert "| walks | 3 |" == [*measures.written(["now"], found[1:])][-1]


def test_a_part_runs_in_a_process_of_its_own(measures):
    assert 0 < measures.run(ROOT, "importing")["import of a session's names: milliseconds"]


def test_names_of_parts_are_no_commits(measures, capsys):
    assert 0 == measures.main(["--importing"])
    assert "import of a session's names" in capsys.readouterr().out
    assert "measures" not in sys.modules
