"""A potential as a file of another program."""

from importlib.util import find_spec
from io import BytesIO
from pathlib import Path

from forgefield.config.messages import did_you_mean
from forgefield.errors import UserError
from forgefield.files import atomic_file
from forgefield.models.mace.settings import MaceSettings
from forgefield.models.potential import Potential, load_potential

FORMATS = {"mace": "mace"}
"""Names of formats, and the architecture that each can hold."""

CHEBYSHEV = "; mace-torch leaves the derivative of Chebyshev functions out of its forces, so only energies will agree"


def export_model(model: Path, output: Path, to: str = "mace", dtype: str | None = None) -> str:
    """Write the potential in directory ``model`` as ``output``, whole or not at all.

    ``mace`` is the file that mace-torch itself saves: the whole model with its energy shifts, in eV and Å.

    Args:
        model: a potential's directory.
        output: the file to write.
        to: the format.
        dtype: ``float32`` or ``float64``; by default that of the potential's parameters.

    Returns:
        What was written, in a few words.

    Raises:
        UserError: an unknown format, or one that cannot hold this potential.
    """
    if to not in FORMATS:
        raise UserError(f"--to {to}: no such format{did_you_mean(to, FORMATS)}")
    potential = load_potential(model)
    if potential.architecture != FORMATS[to]:
        raise UserError(f"{model}: a model of architecture {potential.architecture!r} cannot be exported to {to}")
    if not find_spec("torch") or not find_spec("mace"):
        raise UserError("--to mace needs mace-torch; pip install 'forgefield[fabric]'")
    precision = dtype or _precision(potential)
    data = _mace_file(potential, precision)
    with atomic_file(output) as temporary:
        temporary.write_bytes(data)
    note = CHEBYSHEV if MaceSettings.model_validate(potential.config).radial_type == "chebyshev" else ""
    return f"{to}, {precision}, energy shifts included{note}"


def _precision(potential: Potential) -> str:
    """The widest precision of the parameters."""
    return max((parameter.dtype.name for parameter in potential.parameters.values()), default="float64")


def _mace_file(potential: Potential, precision: str) -> bytes:
    import torch

    from forgefield.models.mace.torch_exchange import to_torch
    from forgefield.models.mace.torch_reference import quiet_mace

    module = to_torch(potential, getattr(torch, precision), plain=True)
    file = BytesIO()
    with quiet_mace():
        torch.save(module, file)
    return file.getvalue()
