"""In notebooks a user's mistake is a line of his own and one sentence; a bug of ours is shown whole."""

import pytest

import onlineic as ic
from onlineic.errors import InternalError, InvalidQueryError, OnlineICError

DOMAIN = ic.Domain.of(age=range(17, 91))


def mistake():
    ic.where(agge=3).bind(DOMAIN)


def test_only_the_callers_lines_are_shown():
    with pytest.raises(InvalidQueryError) as caught:
        mistake()
    lines = caught.value._render_traceback_()

    assert (
        "InvalidQueryError: attribute must be one of the domain's, got 'agge'; did you mean 'age'?"
        == lines[-1]
    )
    assert any("ic.where(agge=3).bind(DOMAIN)" in line for line in lines)
    assert 0 < len([line for line in lines if line.lstrip().startswith("File")]) <= 3
    assert not any("onlineic/" in line and "test_tracebacks" not in line for line in lines if "File" in line)


def test_a_bug_of_ours_is_shown_whole():
    with pytest.raises(InternalError) as caught:
        raise InternalError("a test must be reserved.")
    lines = caught.value._render_traceback_()

    assert "Traceback" in lines[0]
    assert "a test must be reserved." in lines[-1]


def test_an_error_that_was_never_raised_has_its_message():
    assert ["OnlineICError: so it is"] == OnlineICError("so it is")._render_traceback_()


def test_ipython_shows_it_short(capsys):
    shells = pytest.importorskip("IPython.core.interactiveshell")
    shell = shells.InteractiveShell.instance()
    shell.user_ns["ic"], shell.user_ns["DOMAIN"] = ic, DOMAIN
    shell.run_cell("def inner():\n    return ic.where(agge=3).bind(DOMAIN)\n")
    capsys.readouterr()
    shell.run_cell("inner()")
    shown = "".join(capsys.readouterr())

    assert "did you mean 'age'?" in shown
    assert "return ic.where(agge=3)" in shown
    assert len(shown.splitlines()) <= 8
