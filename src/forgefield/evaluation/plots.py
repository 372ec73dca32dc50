"""All pictures of one run, drawn from its files alone."""

from pathlib import Path

from matplotlib import rc_context
from matplotlib.figure import Figure

from forgefield.config.evaluation import PlotsConfig
from forgefield.errors import UserError
from forgefield.evaluation.learning_curve import learning_curve_figure
from forgefield.evaluation.metrics_file import read_splits
from forgefield.evaluation.parity import QUANTITIES, parity_figure
from forgefield.files import atomic_file

STYLE = {
    "font.size": 9,
    "axes.linewidth": 0.6,
    "axes.titlesize": 9,
    "svg.fonttype": "path",
    "svg.hashsalt": "forgefield",
}
TITLES = {
    "energy": [("refitted", "zero-shot, energy shifts refitted"), ("finetuned", "fine-tuned")],
    "forces": [("foundation", "zero-shot"), ("finetuned", "fine-tuned")],
    "stress": [("foundation", "zero-shot"), ("finetuned", "fine-tuned")],
}


def plot_run(run: Path, config: PlotsConfig) -> list[Path]:
    """Draw parity_energy, parity_forces, parity_stress where there is stress, and learning_curve.

    Args:
        run: the run's directory with ``metrics.json``, ``predictions_{split}.h5`` and ``history.csv``.
        config: the config's ``plots`` section.

    Returns:
        The pictures' paths.

    Raises:
        UserError: the run has not been evaluated.
    """
    if not (run / "metrics.json").exists():
        raise UserError(f"{run}: no metrics.json; evaluate the run first with `forgefield evaluate`")
    splits = read_splits(run)
    split = "test" if "test" in splits else next(iter(splits))
    metrics = dict(splits[split].variants())
    predictions = run / f"predictions_{split}.h5"
    paths = []
    with rc_context(STYLE):
        for name, quantity in QUANTITIES.items():
            panels = [(v, t) for v, t in TITLES[name] if v in metrics] or [("trained", "trained from scratch")]
            errors = {variant: getattr(metrics[variant], quantity.name) for variant, _ in panels}
            if all(of_variant and of_variant.n for of_variant in errors.values()):
                figure = parity_figure(predictions, quantity, panels, errors)
                paths += _save(figure, run / f"parity_{name}", config)
        paths += _save(learning_curve_figure(run / "history.csv"), run / "learning_curve", config)
    return paths


def _save(figure: Figure, stem: Path, config: PlotsConfig) -> list[Path]:
    paths = [stem.with_suffix(".png"), stem.with_suffix(".svg")]
    for path, metadata in zip(paths, (None, {"Date": None}), strict=True):  # equal numbers give equal bytes
        with atomic_file(path) as temporary:
            figure.savefig(temporary, format=path.suffix[1:], dpi=config.dpi, metadata=metadata)
    return paths
