"""From what the probes reported to findings with remedies."""

import os
import platform
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from forgefield import __version__
from forgefield.doctor.findings import Finding
from forgefield.doctor.machine import BUILD_REMEDY
from forgefield.doctor.packages import GROUPS, installed_version
from forgefield.doctor.processes import NO_ANSWER, Probe, find_program, run


def judge_packages(probes: Mapping[str, Probe]) -> list[Finding]:
    """Return a finding for Python, forgefield and each package."""
    findings = [
        Finding("packages", "python", "ok", f"{platform.python_version()} ({sys.executable})"),
        Finding("packages", "forgefield", "ok", __version__),
    ]
    for group in GROUPS:
        findings += judge_group(group, probes[group])
    return findings


def judge_group(group: str, probe: Probe) -> Iterator[Finding]:
    """Tell packages that work from those that are missing and those that are broken."""
    killer = None
    for distribution, _ in GROUPS[group]:
        version = installed_version(distribution)
        problem = probe.imports.get(distribution)
        if version is None:
            yield Finding("packages", distribution, "missing", "not installed", missing_remedy(group, distribution))
        elif killer:
            yield Finding("packages", distribution, "note", f"{version}, not tried: {killer} ended the check")
        elif problem or distribution not in probe.imports:
            if problem is None:
                killer, problem = distribution, probe.error
            remedy = f"{sys.executable} -m pip install --force-reinstall --no-deps {distribution}=={version}"
            if str(problem).startswith(NO_ANSWER):
                remedy = "forgefield doctor once more, on an idle machine"
            yield Finding("packages", distribution, "broken", f"{version}, but import fails: {problem}", remedy)
        else:
            yield Finding("packages", distribution, "ok", version)


def missing_remedy(group: str, distribution: str) -> str:
    """Return how to get a package that is not installed."""
    if distribution == "mpi4jax":
        return BUILD_REMEDY
    return "make venv" if group == "base" else f"make venv, or pip install -e '.[{group}]'"


def judge_devices(probes: Mapping[str, Probe], found: Sequence[Finding]) -> list[Finding]:
    """Return a finding for the CPU and for the devices that JAX and PyTorch see."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    findings = [Finding("devices", "CPU", "ok", f"{cores} cores")]
    smi = find_program("nvidia-smi")
    has_gpu = smi is not None and "GPU" in run([smi, "-L"], limit=10).stdout
    for name, group, build in (("JAX", "jax", "jax[cuda13]"), ("PyTorch", "fabric", "torch")):
        trial = probes[group].trial
        if trial is None:
            fault = first_fault((group,), found)
            findings.append(Finding("devices", name, "broken", fault.name if fault else str(probes[group].error)))
        elif trial["platform"] != "cpu":
            kinds = Counter(trial["devices"]).items()
            findings.append(Finding("devices", name, "ok", ", ".join(f"{count} x {kind}" for kind, count in kinds)))
        elif has_gpu:
            detail = "the CPU only, though the machine has an NVIDIA GPU"
            findings.append(Finding("devices", name, "note", detail, f"pip install '{build}' in its CUDA build"))
        else:
            findings.append(Finding("devices", name, "ok", "CPU"))
    return findings


def judge_methods(probes: Mapping[str, Probe], found: Sequence[Finding]) -> list[Finding]:
    """Return whether each engine, with each parallel method, can run here."""
    jax, mpi, torch = ((probes[group].trial or {}) for group in ("jax", "mpi", "fabric"))
    several = "the CPU as several devices" if jax.get("platform") == "cpu" else f"{len(jax.get('devices', ''))} devices"
    trials = (
        # name, groups it needs, whether its trial went well, what to say then, and otherwise
        ("jax: single", ("jax",), jax.get("single"), "one device", "a compiled sum came out wrong"),
        ("jax: jax", ("jax",), jax.get("several"), several, "only one device is here"),
        ("jax: mpi", ("jax", "mpi"), mpi.get("ranks") == 2, f"{mpi.get('library')}, tried on 2 ranks", "no 2 ranks"),
        ("fabric", ("fabric",), bool(torch), "PyTorch and Lightning Fabric", "no answer"),
    )
    findings = []
    for name, groups, worked, success, failure in trials:
        if fault := first_fault(groups, found):
            findings.append(Finding("methods", name, fault.status, f"{fault.name}: {fault.detail}", fault.remedy))
        elif worked:
            findings.append(Finding("methods", name, "ok", success))
        else:
            findings.append(Finding("methods", name, "broken", probes[groups[-1]].error or failure))
    return findings


def first_fault(groups: Sequence[str], found: Sequence[Finding]) -> Finding | None:
    """Return the first thing that some groups of packages need and that is missing or broken."""
    needed = {package.distribution for group in ("base", *groups) for package in GROUPS[group]}
    if "mpi" in groups:
        needed.add("mpirun")
    return next((finding for finding in found if finding.name in needed and finding.status != "ok"), None)
