"""Times the same training on 1, 2 and 4 devices, by JAX in one process and by MPI with one rank for each.

The dataset, global batch, model and precision are the same in all runs, each device has one core, and runs and epochs
that compile do not count: the median of all but the first is taken. Runs take turns. For MPI the slowest rank counts.
Run ``python benchmarks/scaling.py --help`` from the repository's root.
"""

import argparse
import tempfile
from dataclasses import replace
from pathlib import Path

import models
import numpy as np
from devices import Training, add_options, compare
from scaling_docs import update
from systems import SYSTEMS

from forgefield.data.store import StoreWriter
from forgefield.models.potential import save_potential
from forgefield.units import Units

AVERAGE_NEIGHBORS = 16.5


def main() -> None:
    options = parse()
    with tempfile.TemporaryDirectory() as name:
        store, model = write_inputs(Path(name), options)
        table = compare(Training(store, model, options.batch, options.epochs, options.precision), options)
    if options.update_docs:
        update(options.model, options.batch, options.devices, table)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_options(parser, "scaling")
    parser.add_argument("--model", default="128x0e", type=models.model_name)
    parser.add_argument("--system", default="3bpa", choices=SYSTEMS)
    parser.add_argument("--structures", type=int, default=256)
    parser.add_argument("--batch", type=int, default=32, help="over all devices (%(default)s)")
    parser.add_argument("--precision", default="float32", choices=("float32", "float64"))
    parser.add_argument("--update-docs", action="store_true", help="write table and picture of docs/ as well")
    options = parser.parse_args()
    if options.update_docs and (options.system, options.precision, options.devices[0]) != ("3bpa", "float32", 1):
        parser.error("--update-docs is for 3bpa in float32, from one device on")
    return options


def write_inputs(folder: Path, options: argparse.Namespace) -> tuple[Path, Path]:
    """A store of the system's structures, without forces or energy, and the model."""
    pool = SYSTEMS[options.system]().pool
    chosen = [
        replace(pool[i % len(pool)], energy=0.0, forces=np.zeros_like(pool[0].positions))
        for i in range(options.structures)
    ]
    settings = {"units": Units(), "dtype": np.float64, "has_virial": False, "attributes": {}}
    store, model = folder / "train.h5", folder / "model"
    with StoreWriter(store, n_structures=len(chosen), max_atoms=max(map(len, chosen)), **settings) as new:
        new.append(chosen)
    elements = tuple(sorted({int(z) for s in chosen for z in s.numbers}))
    save_potential(models.potential(options.model, elements, AVERAGE_NEIGHBORS), model)
    return store, model


if __name__ == "__main__":
    main()
