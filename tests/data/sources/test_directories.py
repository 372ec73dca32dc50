"""Directories as sources: of files, of runs of VASP, of DeePMD's systems."""

import gzip
import shutil

import pytest

from forgefield.config.dataset import DatasetConfig
from forgefield.data.convert import convert_dataset
from forgefield.data.sources import find_files
from forgefield.errors import UserError

XYZ = (
    '1\nProperties=species:S:1:pos:R:3:forces:R:3 energy=-1.0 pbc="T T T" Lattice="3 0 0 0 3 0 0 0 3"\nH 0 0 0 0 0 0\n'
)


@pytest.fixture
def runs(shared_data, tmp_path):
    """Two runs of VASP, the second with nothing but a compressed OUTCAR, and a system of DeePMD."""
    for name in ("run1", "run2"):
        (tmp_path / "all" / name).mkdir(parents=True)
        (tmp_path / "all" / name / "INCAR").write_text("NELM = 100\n")
    outputs = shared_data / "qm_outputs"
    shutil.copy(outputs / "vasp_Ti_aimd_vasprun.xml", tmp_path / "all/run1/vasprun.xml")
    shutil.copy(outputs / "vasp_Ti_aimd_nwrite0_OUTCAR", tmp_path / "all/run1/OUTCAR")
    packed = gzip.compress((outputs / "vasp_ch4_unconverged_OUTCAR").read_bytes())
    (tmp_path / "all/run2/OUTCAR.gz").write_bytes(packed)
    shutil.copytree(shared_data / "deepmd/water_0", tmp_path / "all/water")
    return tmp_path / "all"


def names(paths, root):
    return [str(path.relative_to(root)) for path in paths]


def test_what_a_directory_stands_for(runs):
    assert names(find_files(runs), runs) == ["run1/vasprun.xml", "run2/OUTCAR.gz", "water"]
    assert names(find_files(runs / "run1"), runs) == ["run1/vasprun.xml"]
    assert names(find_files(runs / "w*"), runs) == ["water"]
    assert names(find_files([runs / "run*", runs / "water"]), runs) == ["run1/vasprun.xml", "run2/OUTCAR.gz", "water"]


def test_runs_and_systems_convert_together(runs, tmp_path):
    config = DatasetConfig(source=str(runs), split={"train": 60, "valid": 10, "test": 10})
    report = convert_dataset("all", config, tmp_path / "out")
    assert [(entry["format"], entry["frames"]) for entry in report["sources"]] == [
        ("vasp-xml", 10),
        ("vasp-out", 3),
        ("deepmd", 80),
    ]
    assert report["frames"] == {"read": 93, "usable": 91, "rejected": 2, "in_no_part": 11}


def test_files_in_folders_in_order(tmp_path):
    for name in ("b/2.xyz", "b/1.xyz", "a.xyz", ".hidden"):
        (tmp_path / "d" / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / "d" / name).write_text(XYZ)
    assert names(find_files(tmp_path / "d"), tmp_path / "d") == ["a.xyz", "b/1.xyz", "b/2.xyz"]


def test_a_file_that_is_no_data_is_not_passed_over(tmp_path):
    (tmp_path / "a.xyz").write_text(XYZ)
    (tmp_path / "submit.sh").write_text("echo submitted\n")
    with pytest.raises(
        UserError, match=r"submit\.sh: of a format that ASE does not know; .* a glob such as .*/\*\.xyz"
    ):
        find_files(tmp_path)


def test_an_empty_directory(tmp_path):
    with pytest.raises(UserError, match="no files in this directory"):
        find_files(tmp_path)


def test_a_readme_is_no_trajectory_of_castep(tmp_path):
    """ASE goes by the ending .md."""
    (tmp_path / "README.md").write_text("# Data\n")
    with pytest.raises(UserError, match=r"README.md: of a format that ASE does not know; .*name the files to read by"):
        find_files(tmp_path)
