"""Times the training of a preset, the nanotube of 370 atoms by default, on 1, 2 and 4 devices, by JAX and by MPI.

Data, foundation model, batch and precision are those of the preset; the rest is as in ``scaling.py``. It also tells how
long a training step waits for its batch. Run ``python benchmarks/md22.py --help`` from the repository's root.
"""

import argparse
import tempfile
from pathlib import Path

from devices import Training, add_options, compare

from forgefield.config import load_config
from forgefield.data.convert import convert_dataset
from forgefield.errors import reported_errors
from forgefield.models.foundation import import_model


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_options(parser, "md22")
    parser.add_argument("--preset", default="config/md22_nanotube.yaml", help="(%(default)s)")
    parser.add_argument("--set", nargs="+", default=[], metavar="KEY=VALUE", help="instead of what the preset says")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, reported_errors():
        config = load_config(options.preset, options.set)
        data, model = Path(name) / "data", Path(name) / "model"
        convert_dataset(config.dataset, config.datasets[config.dataset], data)
        import_model(config.model, config.models[config.model], model)
        training = config.training
        compare(Training(data / "train.h5", model, training.batch, options.epochs, training.precision), options)


if __name__ == "__main__":
    main()
