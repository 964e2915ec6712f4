"""Results that are no longer those of the code are told: by the digest of the code, and by a rerun."""

import importlib
import json
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import attrs
import pytest

FOLDER = Path(__file__).resolve().parent.parent / "experiments"
SCRIPTS = sorted(path.stem for path in FOLDER.glob("*.py") if not path.stem.startswith("make_"))
CODE = '''"""About."""
import warnings
X = 1
__version__ = "0.2.0"


def f(a):
    """Say."""
    if a < X:
        raise ValueError(f"too low: {a}")
    warnings.warn("high", stacklevel=2)
    return a + X  # why
'''


@pytest.fixture(scope="module")
def study():
    """Import a module of the experiments by name; what it brings along is forgotten afterwards."""
    before = set(sys.modules)
    with pytest.MonkeyPatch.context() as changed:
        changed.syspath_prepend(str(FOLDER))
        yield importlib.import_module
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(FOLDER)):
            del sys.modules[name]


@pytest.fixture(scope="module")
def today(study):
    """The digests of the code."""
    return study("study.provenance").code()


@pytest.fixture
def recorded(study, today):
    """A script, and a result of it that was made a moment ago: the places that are compared, stamped."""
    module = study("certificates")
    found = module.again({})
    row = {"stream": found["rows/0/stream"], "rms_by_seed": [found["rows/0/rms_by_seed/0"]]}
    config = json.loads(json.dumps(attrs.asdict(module.Config())))
    stamp = {"versions": study("study.provenance").versions(), "code": today}
    return module, {"config": config, **stamp, "rows": [row]}


def test_every_result_can_be_compared_or_is_one_of_times(study):
    unlike = [name for name in SCRIPTS if "\ndef again(" not in (FOLDER / f"{name}.py").read_text("utf-8")]

    assert set(unlike) == study("study.fresh").MEASURE_TIME


def test_a_result_of_today_is_the_same_and_no_older(recorded, study, today):
    fresh, (module, result) = study("study.fresh"), recorded

    verdict = fresh.judged("certificates", module, result, today)
    lines, well = fresh.told([verdict], True)

    assert ((), "", ()) == (verdict.differences, verdict.older, verdict.environment)
    assert (["1 results: 0 red, 0 of older code"], True) == (lines, well)


def test_a_planted_change_of_a_constant_is_red_and_names_result_and_command(
    recorded, study, today, monkeypatch
):
    fresh, (module, result) = study("study.fresh"), recorded
    monkeypatch.setattr("onlineic.plan.demand.KNOWN_TESTS", Fraction(1, 10))

    verdict = fresh.judged("certificates", module, result, today)
    lines, well = fresh.told([verdict], False)

    assert not well
    assert "RED certificates: run python experiments/certificates.py again" == lines[1]
    assert lines[2].startswith("rows/0/rms_by_seed/0: recorded ")


def test_a_changed_setting_is_red_without_a_rerun(recorded, study):
    fresh, (module, result) = study("study.fresh"), recorded
    result["config"]["runs"] = 6

    verdict = fresh.judged("certificates", module, result, {})

    assert ("config/runs: recorded 6, now 5",) == verdict.differences


def test_other_versions_are_named_and_compared_loosely(recorded, study, today):
    fresh, (module, result) = study("study.fresh"), recorded
    result["versions"]["numpy"] = "1.0"

    result["rows"][0]["rms_by_seed"][0] *= 1 + 9e-4
    near = fresh.judged("certificates", module, result, today)
    result["rows"][0]["rms_by_seed"][0] *= 1 + 9e-4
    far = fresh.judged("certificates", module, result, today)

    assert ((), 1) == (near.differences, len(near.differences) + len(far.differences))
    assert near.environment[0].startswith("numpy 1.0, here ")


def test_what_was_made_by_other_code_is_told_by_its_wings(study):
    fresh, stamp = (
        study("study.fresh"),
        {"versions": {"commit": "1234567890"}, "code": {"plan": "a", "ask": "b"}},
    )

    assert "" == fresh.aged(stamp, {"plan": "a", "ask": "b", "service": "c"})
    assert "ask, plan changed since 1234567" == fresh.aged(stamp, {"plan": "c"})
    assert "without a stamp" == fresh.aged({"versions": {}}, {})
    older = {"made": {"versions": {}, "code": {"plan": "0"}}}
    assert "plan changed since 1234567" == fresh.aged(stamp | {"rows": [older]}, stamp["code"])
    assert "before results were stamped" in fresh.aged(stamp | {"rows": [{"made": {}}]}, stamp["code"])


def test_what_is_of_the_present_code_is_not_run_again(study, today, tmp_path, monkeypatch):
    runner = study("study.all")
    monkeypatch.setattr(runner, "RESULTS", tmp_path)
    config = json.loads(json.dumps(attrs.asdict(study("gallery").Config())))
    stamp = {"versions": study("study.provenance").versions(), "code": today}
    older = {"versions": {"commit": "1234567890"}, "code": today | {"plan": "0"}}
    rows = [{"stream": "adult6", "seconds": 5.0}, {"stream": "adult5", "seconds": 3.0, "made": older}]

    def task(**content):
        result = {"config": config, **stamp, "wall_seconds": 9.0, "rows": rows[:1], **content}
        (tmp_path / "gallery.json").write_text(json.dumps(result))
        return runner.task_of("gallery", today)

    assert task() is None
    assert ("other settings", ()) == (task(config={}).why, task(config={}).only)
    assert ((), 9.0) == (task(**older).only, task(**older).seconds)
    assert (("adult5",), 3.0) == (task(rows=rows).only, task(rows=rows).seconds)
    assert "no result" == runner.task_of("turbo", today).why


def test_rows_that_stay_in_a_result_keep_what_they_were_made_by(study, tmp_path):
    outcome, path = study("study.outcome"), tmp_path / "one.json"
    old = {"config": {}, "versions": {"commit": "a"}, "code": {"plan": "1"}}
    path.write_text(json.dumps(old | {"rows": [{"stream": "a"}, {"stream": "b"}]}))
    new = {"config": {}, "versions": {"commit": "b"}, "code": {"plan": "2"}, "rows": [{"stream": "b"}]}

    found = outcome.merged(path, new, "ab")

    assert {"versions": {"commit": "a"}, "code": {"plan": "1"}} == found["rows"][0]["made"]
    assert {"stream": "b"} == found["rows"][1]
    assert {"plan": "2"} == found["code"]


@pytest.mark.parametrize(
    ("changed", "same"),
    [
        (CODE.replace('"""About."""', '"""Other words."""'), True),
        (CODE.replace("# why", "# because"), True),
        (CODE.replace("X\n", "X\n\n") + "\n", True),
        (CODE.replace("too low", "below 1"), True),
        (CODE.replace('"0.2.0"', '"1.0.0"'), True),
        (CODE.replace('"high", stack', '"higher", stack'), True),
        (CODE.replace("X = 1", "X = 2"), False),
        (CODE.replace("X = 1", "X = 1.0"), False),
        (CODE.replace("a + X", "a - X"), False),
        (CODE.replace("f(a)", "f(a=0)"), False),
        (CODE.replace("ValueError", "KeyError"), False),
        (CODE.replace("warnings.warn", "warnings.simplefilter"), False),
    ],
)
def test_a_digest_is_of_the_code_without_docstrings_comments_and_messages(changed, same, study, tmp_path):
    provenance = study("study.provenance")
    (tmp_path / "wing").mkdir()
    file = tmp_path / "wing" / "one.py"
    file.write_text(CODE)
    before = provenance.code(tmp_path)
    file.write_text(changed)

    assert same == (before == provenance.code(tmp_path))
    assert ["wing"] == list(before)


def test_code_that_is_not_committed_makes_no_result(study, tmp_path, monkeypatch, capsys):
    outcome, fresh = study("study.outcome"), tmp_path / "elsewhere"
    fresh.mkdir()
    monkeypatch.setattr(outcome, "uncommitted", lambda places: ["onlineic/plan/defaults.py"])
    monkeypatch.setattr(outcome, "code", lambda **_: {})
    monkeypatch.setattr(outcome, "RESULTS", tmp_path)
    monkeypatch.setattr(outcome.tempfile, "mkdtemp", lambda: fresh)
    monkeypatch.setattr(sys, "argv", ["one.py"])

    def run(quick):
        return {"versions": {"commit": "1"}, "wall_seconds": 0.0}

    outcome.script("one", "About.", run, str, lambda *_: None)

    assert capsys.readouterr().out.startswith("in no commit, ")
    assert [] == list(tmp_path.glob("*.json"))
    assert {"commit": None} == json.loads((fresh / "one.json").read_text())["versions"]


def test_what_is_not_committed_is_found(study, tmp_path):
    provenance = study("study.provenance")
    run = ("git", "-c", "user.name=a", "-c", "user.email=a@b")
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "one"]):
        if words[0] == "add":
            (tmp_path / "wing").mkdir()
            (tmp_path / "wing" / "one.py").write_text("X = 1\n")
        subprocess.run([*run, *words], cwd=tmp_path, check=True)
    clean = provenance.uncommitted(["wing"], tmp_path)
    (tmp_path / "wing" / "one.py").write_text("X = 2\n")
    (tmp_path / "wing" / "two.py").write_text("X = 2\n")

    assert [] == clean
    assert ["wing/one.py", "wing/two.py"] == sorted(provenance.uncommitted(["wing"], tmp_path))
    assert [] == provenance.uncommitted(["elsewhere"], tmp_path)
    assert 40 == len(provenance.commit(tmp_path))
