"""Every listed slip in the code fails a test: `make mutants`, an hour on two cores.

`mutants.toml` is the list. By default only the list itself is tested, so that it never rots: each mutant is
found in its file and compiles. With `-m mutants` each is made in a copy of the checkout, and the tests of its
group run there until one fails. `pytest -m mutants tests/mutants -k "curator or ledger"` picks some by id;
`--full` runs the whole suite for those that their group leaves alive; `--workers` is how many run at a time.
"""

import ast
import faulthandler
import os
import queue
import re
import shutil
import subprocess
import sys
import time
import tomllib
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import attrs
import pytest

ROOT = Path(__file__).resolve().parents[2]
LIST = tomllib.loads(Path(__file__).with_name("mutants.toml").read_text(encoding="utf-8"))
SUITE = "tests"
PLACES = {path.name: path.relative_to(ROOT).as_posix() for path in (ROOT / SUITE).rglob("test_*.py")}
FOLDERS = ("onlineic", "tests", "docs", "experiments", "benchmarks")
FILES = ("pyproject.toml", "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "Makefile")
KINDS = {"privacy", "bound", "accuracy", "hygiene"}


@attrs.frozen
class Mutant:
    """One slip: `old`, which stands in `file` once (or for the `nth` time), becomes `new`."""

    file: str
    tests: tuple[str, ...]  # names of files, the likeliest to fail first
    id: str
    kind: str
    old: str
    new: str
    nth: int | None = None
    survives: str = ""  # why no test of its group has to fail

    def made_in(self, source: str) -> str:
        """Return the mutated source, or raise ValueError where the list does not fit it."""
        places = [found.start() for found in re.finditer(re.escape(self.old), source)]
        if len(places) <= (self.nth or 0) or (self.nth is None and len(places) != 1):
            raise ValueError(f"{self.id}: {self.old!r} stands in {self.file} {len(places)} times")
        at = places[self.nth or 0]
        return source[:at] + self.new + source[at + len(self.old) :]


MUTANTS = [
    Mutant(
        file=group["file"],
        tests=tuple(LIST["stages"][group["stage"]] if "stage" in group else ()) + tuple(group["tests"]),
        **mutant,
    )
    for group in LIST["group"]
    for mutant in group["mutant"]
]


def test_list_is_long_and_ids_are_unique():
    repeated = [name for name, times in Counter(mutant.id for mutant in MUTANTS).items() if times > 1]

    assert [] == repeated
    assert 200 <= len(MUTANTS)
    assert {mutant.kind for mutant in MUTANTS} <= KINDS


@pytest.mark.parametrize("file", sorted({mutant.file for mutant in MUTANTS}))
def test_every_mutant_of_a_file_is_found_there_and_compiles(file):
    source = (ROOT / file).read_text(encoding="utf-8")
    whole = ast.dump(ast.parse(source))

    for mutant in MUTANTS:
        if mutant.file == file:
            assert whole != ast.dump(ast.parse(mutant.made_in(source))), mutant.id


def test_every_test_file_of_the_list_exists():
    assert set() == {test for mutant in MUTANTS for test in mutant.tests} - set(PLACES)


def test_a_mutant_that_does_not_fit_is_refused():
    mutant = Mutant("f.py", (), "f-1", "privacy", "a + b", "a - b")

    with pytest.raises(ValueError, match=r"f-1: 'a \+ b' stands in f.py 2 times"):
        mutant.made_in("c = a + b\nd = a + b\n")
    with pytest.raises(ValueError, match="0 times"):
        mutant.made_in("c = a+b\n")
    assert "c = a + b\nd = a - b\n" == attrs.evolve(mutant, nth=1).made_in("c = a + b\nd = a + b\n")


class Copies:
    """Copies of the checkout, one for each worker, and what tests say in them."""

    def __init__(self, folder: Path, workers: int) -> None:
        self._free: queue.Queue[Path] = queue.Queue()
        self._seconds: dict[str, float] = {}
        for number in range(workers):
            copy = folder / f"copy{number}"
            for name in FOLDERS:
                shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
            for name in FILES:
                shutil.copy2(ROOT / name, copy / name)
            # The virtual environment holds an editable install: that it is not what gets tested.
            imported = self._run(copy, 60, "-c", "import onlineic; print(onlineic.__file__)").stdout.strip()
            assert str(copy / "onlineic" / "__init__.py") == imported
            self._free.put(copy)

    def passes(self, test: str) -> bool:
        """Run a file of tests, or the suite, on the code as it is; keep the time."""
        copy, start = self._free.get(), time.monotonic()
        try:
            code = self._tests(copy, 1800, test).returncode
            self._seconds[test] = time.monotonic() - start
            return code == 0
        finally:
            self._free.put(copy)

    def killer(self, mutant: Mutant, tests: tuple[str, ...]) -> str:
        """Return the test that fails with the mutant, "timeout", or "" for none."""
        copy = self._free.get()
        path = copy / mutant.file
        source = path.read_text(encoding="utf-8")
        allowed = 60 + 5 * sum(self._seconds.get(test, 10.0) for test in tests)
        try:
            path.write_text(mutant.made_in(source), encoding="utf-8")
            done = self._tests(copy, allowed, *tests)
        except subprocess.TimeoutExpired:
            return "timeout"
        finally:
            path.write_text(source, encoding="utf-8")
            self._free.put(copy)
        if done.returncode in (0, 4):  # 4: a remembered test is there no more
            return ""
        assert done.returncode in (1, 2), done.stdout[-2000:] + done.stderr[-2000:]
        failed = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", done.stdout, re.MULTILINE)
        return failed[1] if failed else "?"

    def _tests(self, copy: Path, seconds: float, *tests: str) -> subprocess.CompletedProcess[str]:
        # Without the tests of the list: a mutated file never fits it.
        options = ("-x", "-q", "--tb=no", "-rfE", "-p", "no:cacheprovider", "--ignore=tests/mutants")
        return self._run(copy, seconds, "-m", "pytest", *options, *(PLACES.get(test, test) for test in tests))

    @staticmethod
    def _run(copy: Path, seconds: float, *arguments: str) -> subprocess.CompletedProcess[str]:
        alone = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=copy,
            env=os.environ | alone | {"PYTHONPATH": str(copy)},
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )


@pytest.fixture(scope="module")
def verdicts(request, tmp_path_factory):
    """id -> future of the test that fails with the mutant, for all mutants that were asked for."""
    faulthandler.cancel_dump_traceback_later()  # waiting is no hanging
    config = request.config
    workers, full = config.getoption("--workers", 2), config.getoption("--full", False)
    asked = [item.callspec.params["mutant"] for item in request.session.items if "mutants" in item.keywords]
    copies = Copies(tmp_path_factory.mktemp("mutants"), workers)
    remembered = config.cache.get("mutants/killers", {})

    def judge(mutant):
        last = remembered.get(mutant.id)
        found = (last and copies.killer(mutant, (last,))) or copies.killer(mutant, mutant.tests)
        found = found or (full and copies.killer(mutant, (SUITE,))) or ""
        if "::" in found:
            remembered[mutant.id] = found
        return found

    with ThreadPoolExecutor(workers) as pool:
        files = list(dict.fromkeys(test for mutant in asked for test in mutant.tests)) + [SUITE] * full
        failing = [file for file, good in zip(files, pool.map(copies.passes, files), strict=True) if not good]
        if failing:
            pytest.fail(f"fails without any mutant, so it kills them all: {', '.join(failing)}")
        try:
            yield {mutant.id: pool.submit(judge, mutant) for mutant in asked}
        finally:
            pool.shutdown(cancel_futures=True)
            config.cache.set("mutants/killers", remembered)


@pytest.mark.mutants
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.id)
def test_mutant_fails_a_test(mutant, verdicts, record_property):
    faulthandler.cancel_dump_traceback_later()
    killer = verdicts[mutant.id].result()
    record_property("mutant", (mutant.file, mutant.id, killer, mutant.survives))

    if not killer and not mutant.survives:
        pytest.fail(f"{mutant.old!r} -> {mutant.new!r} in {mutant.file} fails no test", pytrace=False)
    if killer and mutant.survives:
        pytest.fail(f"is named a survivor, and fails {killer}: {mutant.survives}", pytrace=False)
