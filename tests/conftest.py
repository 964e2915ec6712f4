"""Settings and fixtures of the whole suite."""

import os
import threading
import time
from pathlib import Path

# before numpy is loaded: workers, one a core, must not wait for threads of each other's BLAS
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import hypothesis
import pytest

# A change is judged on fixed examples; `pytest --hypothesis-profile=nightly` looks for new ones.
hypothesis.settings.register_profile(
    "change", max_examples=50, deadline=None, derandomize=True, database=None
)
hypothesis.settings.register_profile("nightly", max_examples=1000, deadline=None, print_blob=True)
hypothesis.settings.load_profile("change")

pytest.register_assert_rewrite("support")


def pytest_addoption(parser):
    parser.addoption("--slow", type=float, default=0.0, metavar="SECONDS", help="of each turn of a server")


@pytest.fixture(scope="session", autouse=True)
def slow_turns(request):
    """With `--slow`, a server sleeps in each turn before it answers: no outcome may rest on that."""
    if seconds := request.config.getoption("--slow"):
        from onlineic.service import Users

        digests = Users.digests

        def slow(users):
            if threading.current_thread().name == "onlineic-writer":
                time.sleep(seconds)
            return digests(users)

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(Users, "digests", slow)
            yield
    else:
        yield


@pytest.fixture(scope="session")
def data_folder():
    """Folder of external data (adult/, nltcs/, ..); without one, the tests that ask for it are skipped."""
    named = os.environ.get("ONLINEIC_DATA")
    folder = Path(named) if named else Path(__file__).resolve().parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"ONLINEIC_DATA={named} is not a folder" if named else "external data: set ONLINEIC_DATA")
    return folder


@pytest.fixture(autouse=True)
def databases_are_closed():
    """Of each test, whether it passed or not."""
    from support.databases import close_opened

    yield
    close_opened()


@pytest.fixture
def listening(monkeypatch):
    """Sessions buy by what is asked, though their cells be few enough for one table of all."""
    from support.sessions import listens_first

    listens_first(monkeypatch)
