"""Files that dpdata reads."""

import importlib.util
import sys

import pytest

from forgefield.errors import UserError

NAME = "qm_outputs/vasp_Ti_aimd_nwrite0_OUTCAR"
needs_dpdata = pytest.mark.skipif(importlib.util.find_spec("dpdata") is None, reason="dpdata is not installed")


@needs_dpdata
def test_an_outcar_that_ase_cannot_read(shared_data, read):
    """dpdata takes VASP's free energy, TOTEN, where ASE takes that without smearing."""
    structures, source = read(shared_data / NAME, format="dpdata:vasp/outcar")
    assert [len(s) for s in structures] == [32, 32]
    assert structures[0].numbers.tolist() == [22] * 32
    assert structures[0].energy == -253.15557734
    assert structures[0].pbc.all()
    assert source.keys.found == {"energy": "energy", "forces": "forces", "virial": "virial"}
    assert source.warnings == [f"{shared_data / NAME}: dpdata: cannot find labels in the frame, ingore"]


@needs_dpdata
@pytest.mark.parametrize("form", ["vasp/xml", "nothing/of/the/kind"])
def test_a_file_of_another_format(shared_data, read, form):
    with pytest.raises(UserError, match=rf"OUTCAR: dpdata cannot read it as {form}: .*; name another format"):
        read(shared_data / NAME, format=f"dpdata:{form}")


def test_without_dpdata(shared_data, read, monkeypatch):
    monkeypatch.setitem(sys.modules, "dpdata", None)
    with pytest.raises(UserError, match=r"format dpdata:vasp/outcar needs the package dpdata; pip install dpdata"):
        read(shared_data / NAME, format="dpdata:vasp/outcar")
