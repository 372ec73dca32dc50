"""Packages that are broken or missing, and what follows for the methods."""

from forgefield.doctor.judge import judge_devices, judge_group, judge_methods
from forgefield.doctor.packages import GROUPS, Package
from forgefield.doctor.processes import Probe, run_probe


def test_package_that_raises_on_import_is_reported(broken_package):
    broken_package("jax", "raise RuntimeError('built for\\nanother machine')")
    probe = run_probe("jax")
    finding = next(judge_group("jax", probe))
    assert finding.name == "jax"
    assert finding.status == "broken"
    assert "import fails: RuntimeError: built for another machine" in finding.detail
    assert "--force-reinstall --no-deps jax==" in finding.remedy

    methods = judge_methods({"jax": probe, "mpi": Probe(), "fabric": Probe()}, [finding])
    assert [method.status for method in methods[:3]] == ["broken"] * 3
    assert methods[0].detail.startswith("jax: ")
    assert judge_devices({"jax": probe, "fabric": Probe()}, [finding])[1].status == "broken"


def test_package_that_exits_on_import_is_reported(broken_package):
    broken_package("h5py", "raise SystemExit(0)")
    findings = {finding.name: finding for finding in judge_group("base", run_probe("base"))}
    assert "SystemExit" in findings["h5py"].detail
    assert findings["numpy"].status == "ok"


def test_package_that_kills_the_process_is_named_and_later_ones_are_not_blamed(broken_package):
    broken_package("h5py", "import os; os.abort()")
    findings = {finding.name: finding for finding in judge_group("base", run_probe("base"))}
    assert findings["ase"].status == "ok"
    assert findings["h5py"].status == "broken"
    assert "SIGABRT" in findings["h5py"].detail
    assert findings["vesin"].status == "note"
    assert "h5py ended the check" in findings["vesin"].detail


def test_slow_machine_is_no_reason_to_reinstall():
    finding = next(judge_group("fabric", Probe(error="no answer within 120 s")))
    assert finding.status == "broken"
    assert "idle machine" in finding.remedy


def test_missing_package_comes_with_the_extra_that_brings_it(monkeypatch):
    monkeypatch.setitem(GROUPS, "fabric", (Package("no-such-distribution", "no_such_module"),))
    finding = next(judge_group("fabric", Probe({"no-such-distribution": "ModuleNotFoundError"})))
    assert finding.status == "missing"
    assert "pip install -e '.[fabric]'" in finding.remedy


def test_one_device_is_not_several():
    probes = {"jax": Probe(trial={"platform": "gpu", "devices": ["H200"], "single": True, "several": False})}
    methods = judge_methods({**probes, "mpi": Probe(), "fabric": Probe()}, [])
    assert [method.status for method in methods] == ["ok", "broken", "broken", "broken"]
    assert methods[1].detail == "only one device is here"


def test_devices_of_one_kind_are_counted():
    gpus = Probe(trial={"platform": "cuda", "devices": ["H200", "H200"]})
    devices = judge_devices({"jax": gpus, "fabric": gpus}, [])
    assert [device.detail for device in devices[1:]] == ["2 x H200", "2 x H200"]
