"""The audit that anyone can run: right code passes, planted breaches are found, broken noise fails it."""

import json

import attrs
import numpy as np
import pytest

from onlineic.audit import (
    RECORD_BREACHES,
    SESSION_BREACHES,
    THRESHOLD_BREACHES,
    AuditReport,
    Gate,
    run_audit,
)
from onlineic.audit import gates as _gates
from onlineic.audit.breaches import RIGHT_SESSIONS, TABLE, _Slipped
from onlineic.cli.main import main
from onlineic.errors import InvalidParameterError
from onlineic.noise import SimulatedNoise
from onlineic.sparse import ExponentialSparse, GumbelSparse, LaplaceSparse

PASSED = AuditReport((Gate("noise", "right", True, 0.5), Gate("loss", "right too", True, 1.0, 1.0)))
FAILED = AuditReport((*PASSED.gates, Gate("breach", "not found", False, float("inf"), 1.0)))


@pytest.mark.statistical
@pytest.mark.parametrize("most", [1, pytest.param(9, marks=pytest.mark.audit)])
def test_this_installation_passes_every_gate_and_every_breach_is_found(monkeypatch, most):
    """With the sessions that are run a thousand times, or one right and one wrong session of them."""
    for name in ("RIGHT_SESSIONS", "SESSION_BREACHES"):
        monkeypatch.setattr(_gates, name, getattr(_gates, name)[:most])
    report = run_audit(runs=1000)
    assert [gate for gate in report.gates if not gate.passed] == []
    assert {gate.kind for gate in report.gates} == set(_gates.TITLES)
    breaches = [gate for gate in report.gates if gate.kind == "breach"]
    sessions = min(most, len(SESSION_BREACHES))
    assert len(breaches) == len(THRESHOLD_BREACHES) + sessions + len(RECORD_BREACHES)
    assert all(gate.found > gate.claimed for gate in breaches)


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("change", "kinds"),
    [
        (lambda drawn: np.rint(0.9 * drawn).astype(np.int64), {"noise"}),
        (lambda drawn: drawn + 1, {"noise"}),
        (np.abs, {"noise", "tests"}),
    ],
    ids=["nine tenths", "one more", "no sign"],
)
def test_broken_noise_fails_its_gates(monkeypatch, change, kinds):
    for part in ("_session_gates", "_breach_gates"):
        monkeypatch.setattr(_gates, part, lambda noise, runs: ())
    report = run_audit(runs=1000, noise=_Slipped(SimulatedNoise(1), change))

    assert kinds <= {gate.kind for gate in report.gates if not gate.passed}
    assert not report.passed


def narrow_tests(monkeypatch):
    """Half of the noise of every exponential test."""
    first = ExponentialSparse._first
    monkeypatch.setattr(
        ExponentialSparse,
        "_first",
        lambda self, *test: first(attrs.evolve(self, query_scale=self.query_scale / 2), *test),
    )


def narrow_numbers(kind):
    def planted(monkeypatch):
        """Half of the noise of every number that a hit releases."""
        measure = kind.measure
        monkeypatch.setattr(
            kind,
            "measure",
            lambda *hit: measure(*hit[:-1], _Slipped(hit[-1], lambda drawn: drawn // 2)),
        )

    return planted


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("plant", "names"),
    [
        (narrow_tests, ["ExponentialSparse, 3 hits and their numbers"] * 2),
        (narrow_numbers(GumbelSparse), ["GumbelSparse, numbers of its hits"]),
        (narrow_numbers(ExponentialSparse), ["ExponentialSparse, numbers of its hits"]),
        (narrow_numbers(LaplaceSparse), ["LaplaceSparse, numbers of its hits"]),
    ],
    ids=["exponential tests", "Gumbel numbers", "exponential numbers", "Laplace numbers"],
)
def test_a_slip_in_a_mechanism_of_sessions_fails_its_gate_and_no_other(monkeypatch, plant, names):
    """Sessions of the audit are none of these: whoever runs it would not be told."""
    for part in ("_session_gates", "_breach_gates"):
        monkeypatch.setattr(_gates, part, lambda noise, runs: ())
    plant(monkeypatch)
    report = run_audit(runs=1000, noise=SimulatedNoise(1))

    assert names == [gate.name for gate in report.gates if not gate.passed]


@pytest.mark.parametrize("session", [*RIGHT_SESSIONS, *SESSION_BREACHES], ids=lambda session: session.name)
def test_any_source_of_noise_can_be_audited(session):
    session.run(TABLE, SimulatedNoise(1))


@pytest.mark.parametrize("breach", RECORD_BREACHES, ids=lambda breach: breach.name)
def test_what_a_ledger_was_talked_out_of_is_told_by_its_record(breach):
    cost, problems = breach.found()
    right, none = attrs.evolve(breach, ledger=None).found()

    assert cost > breach.claimed >= right
    assert problems
    assert () == none


@pytest.mark.parametrize("variant", THRESHOLD_BREACHES, ids=lambda variant: variant.name)
def test_no_breach_is_an_artefact_with_ten_times_the_noise_it_keeps_its_claim(variant):
    """The same rule with all of its noise ten times as wide costs a tenth, unless some of it is missing."""
    laws = {
        name: attrs.evolve(law, scale=10 * law.scale)
        for name in ("threshold_noise", "query_noise", "redraw")
        if (law := getattr(variant.rule, name)) is not None
    }
    wider = attrs.evolve(variant, rule=attrs.evolve(variant.rule, **laws))
    endless = variant.released == "value" or "none" in {law.method for law in laws.values()}

    assert (wider.loss() > variant.claimed) == (endless or variant.loss() > 10)


def test_report_shows_what_failed_and_the_command_says_so(monkeypatch, capsys):
    assert "FAIL" not in repr(PASSED)
    assert "none failed" in repr(PASSED)
    assert "1 failed" in repr(FAILED)
    assert "1 failed" in FAILED._repr_html_()
    assert 1 == FAILED._repr_html_().count(">FAIL<")

    for report, status in ((PASSED, 0), (FAILED, 1)):
        monkeypatch.setattr("onlineic.cli.audit.run_audit", lambda runs, report=report: report)
        assert main(["audit"]) == status
        assert capsys.readouterr().out == f"{report!r}\n"
        assert main(["audit", "--json", "--runs", "1000"]) == status
        told = json.loads(capsys.readouterr().out)
        assert told["passed"] is (status == 0)
        assert [row["name"] for row in told["gates"]] == [gate.name for gate in report.gates]


def test_too_few_runs_are_refused(capsys):
    with pytest.raises(InvalidParameterError, match="runs must be an integer >= 1000"):
        run_audit(runs=999)
    with pytest.raises(SystemExit):
        main(["audit", "--runs", "10"])


def test_whoever_waits_is_told_which_gate_runs_on_a_terminal_alone(capsys, monkeypatch):
    def audited(**_):
        return AuditReport(
            tuple(_gates._sessions(one, SimulatedNoise(1), 3, "session") for one in RIGHT_SESSIONS[:2])
        )

    monkeypatch.setattr("onlineic.cli.audit.run_audit", audited)
    main(["audit"])
    assert "" == capsys.readouterr().err

    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    main(["audit"])
    told = capsys.readouterr().err.splitlines()
    assert [
        f"onlineic: {one.name} .." for one in RIGHT_SESSIONS[:2]
    ] == told  # and not what its sessions tell
