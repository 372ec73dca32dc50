"""The whole report on the machine that runs the tests."""

from importlib.util import find_spec

from forgefield.doctor import diagnose, report
from forgefield.doctor.packages import GROUPS
from forgefield.doctor.progress import RunningChecks


def test_report_names_every_method_and_jax_runs_here(capsys):
    findings = diagnose(RunningChecks())
    methods = {finding.name: finding for finding in findings if finding.section == "methods"}
    assert list(methods) == ["jax: single", "jax: jax", "jax: mpi", "fabric"]
    assert methods["jax: single"].status == "ok", methods["jax: single"].detail
    assert methods["jax: jax"].status == "ok", methods["jax: jax"].detail
    if find_spec("mpi4jax"):
        assert methods["jax: mpi"].status == "ok", methods["jax: mpi"].detail
        assert "2 ranks" in methods["jax: mpi"].detail
    assert methods["fabric"].status == "ok", methods["fabric"].detail

    report(findings)
    printed, announced = capsys.readouterr()
    assert all(finding.name in printed for finding in findings)
    assert sorted(announced.splitlines()) == sorted(f"checking {name}" for name in [*GROUPS, "programs"])
