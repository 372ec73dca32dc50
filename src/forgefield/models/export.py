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
REPULSION = (
    "; mace-torch makes a constant of the ZBL repulsion in torch's default precision, so float64 results agree only "
    "where that is float64, as MACECalculator(..., default_dtype='float64') sets it"
)
DTYPES = ("float64", "float32")


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
        UserError: an unknown format or precision, a format that cannot hold this potential, or a directory as
            ``output``.
    """
    if to not in FORMATS:
        raise UserError(f"--to {to}: no such format{did_you_mean(to, FORMATS)}")
    if dtype not in (None, *DTYPES):
        raise UserError(f"--dtype {dtype}: no such precision{did_you_mean(dtype, DTYPES)}")
    if output.is_dir():
        raise UserError(f"--output {output}: a directory; give the name of a file, such as {output / 'NAME.model'}")
    potential = load_potential(model)
    if potential.architecture != FORMATS[to]:
        raise UserError(f"{model}: a model of architecture {potential.architecture!r} cannot be exported to {to}")
    if not find_spec("torch") or not find_spec("mace"):
        raise UserError("--to mace needs mace-torch; pip install 'forgefield[fabric]'")
    precision = dtype or _precision(potential)
    data = _mace_file(potential, precision)
    with atomic_file(output) as temporary:
        temporary.write_bytes(data)
    settings = MaceSettings.model_validate(potential.config)
    notes = CHEBYSHEV * (settings.radial_type == "chebyshev") + REPULSION * settings.pair_repulsion
    return f"{to}, {precision}, energy shifts included{notes}"


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
