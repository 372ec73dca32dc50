"""Compiler, MPI and Slurm: missing, broken and well."""

from forgefield.doctor.judge import judge_methods
from forgefield.doctor.machine import check_programs, check_slurm
from forgefield.doctor.processes import Probe


def test_missing_programs_come_with_a_remedy(bare_environment):
    programs = {finding.name: finding for finding in check_programs()}
    for name in ("C++ compiler", "mpicc", "mpirun"):
        assert programs[name].status == "missing"
        assert programs[name].remedy
    assert "g++" in programs["C++ compiler"].remedy
    assert programs["Slurm"].status == "note"


def test_without_mpirun_only_the_mpi_method_is_out(bare_environment):
    works = Probe(trial={"platform": "cpu", "devices": ["cpu"] * 2, "single": True, "several": True})
    methods = judge_methods({"jax": works, "mpi": Probe(trial={"ranks": 1}), "fabric": works}, check_programs())
    assert [method.status for method in methods] == ["ok", "ok", "missing", "ok"]
    assert methods[2].detail.startswith("mpirun: ")
    assert methods[2].remedy


def test_program_that_fails_is_broken(add_program):
    add_program("c++", "echo 'cannot find cc1plus' >&2; exit 1")
    compiler = check_programs()[0]
    assert compiler.status == "broken"
    assert "cannot find cc1plus" in compiler.detail


def test_slurm_without_an_answering_controller_is_broken(add_program):
    for name in ("sbatch", "squeue", "sinfo"):
        add_program(name, "echo 'Unable to contact slurm controller' >&2; exit 1")
    assert check_slurm().status == "broken"
    assert "Unable to contact" in check_slurm().detail


def test_slurm_names_its_partitions(add_program):
    for name in ("sbatch", "squeue", "sinfo"):
        add_program(name, "echo 'cpu* up 4'")
    assert check_slurm().status == "ok"
    assert "cpu* up 4" in check_slurm().detail
