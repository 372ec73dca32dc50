"""What each method needs of MPI's packages, and what a broken installation of them does not touch."""

import os
import subprocess
import sys

import pytest
from launching import MPI, TRAINING, start

BROKEN = "raise RuntimeError('built for another MPI')\n"


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Puts a package of that content, and its version, before the installed one for the processes that are started."""

    def install(name, content, version=None):
        (tmp_path / "site" / name).mkdir(parents=True)
        (tmp_path / "site" / name / "__init__.py").write_text(content)
        if version:
            about = tmp_path / "site" / f"{name}-{version}.dist-info"
            about.mkdir()
            (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        path = os.environ.get("PYTHONPATH")
        monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path / "site"), *([path] if path else [])]))

    return install


def written(tmp_path, *words, **together):
    """The exit code of a training, and what it wrote on stderr."""
    (process,) = start([TRAINING, tmp_path / "run", *words], **together, stderr=subprocess.PIPE, text=True)
    return process.communicate()[1], process.returncode


@pytest.mark.parametrize("words", [["--parallelism", "single"], ["--devices", 2]], ids=["single", "jax"])
def test_a_broken_mpi4jax_is_not_touched_by_one_process(installed, tmp_path, words):
    installed("mpi4jax", BROKEN)
    text, code = written(tmp_path, *words)
    assert (code, "MPI" in text) == (0, False)


@pytest.mark.parametrize(
    ("name", "content", "version", "message"),
    [
        ("mpi4jax", BROKEN, None, "mpi4jax cannot be imported (built for another MPI); build it again"),
        ("mpi4jax", "", "0.8.0", "mpi needs mpi4jax 0.9.0.post1 or newer, found 0.8.0; pip install -U mpi4jax"),
        ("mpi4py", "raise ImportError('no MPI here')\n", None, "mpi needs mpi4py (no MPI here); pip install"),
    ],
)
def test_what_several_ranks_lack_is_named(installed, tmp_path, name, content, version, message):
    installed(name, content, version)
    text, code = written(tmp_path, "--parallelism", "mpi", ranks=2)
    assert message in text
    assert code != 0


def test_a_rank_that_sees_two_devices_is_told_how_to_show_one(tmp_path):
    text, code = written(tmp_path, "--parallelism", "mpi", "--devices", 2, ranks=2)
    assert "sees 2 devices, expected one" in text
    assert "CUDA_VISIBLE_DEVICES=$OMPI_COMM_WORLD_LOCAL_RANK" in text
    assert code != 0


def test_ranks_are_not_shared_by_jax_without_its_own_connections(tmp_path):
    text, _ = written(tmp_path, "--parallelism", "jax", ranks=2)
    assert "2 MPI ranks run without jax.distributed" in text


@pytest.mark.parametrize("program", ["import forgefield", "import forgefield.trainers.force_matching"])
def test_neither_is_imported_before_it_is_needed(program):
    check = f"{program}; import sys; assert not {{'mpi4py', 'mpi4jax'}} & set(sys.modules)"
    assert subprocess.run([sys.executable, "-c", check], env=os.environ | MPI).returncode == 0
