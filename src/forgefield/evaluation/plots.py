"""All pictures of one run, drawn from its files alone."""

from difflib import get_close_matches
from pathlib import Path

from matplotlib import colormaps, rc_context
from matplotlib.figure import Figure

from forgefield.config.evaluation import PlotsConfig
from forgefield.errors import UserError
from forgefield.evaluation.learning_curve import learning_curve_figure
from forgefield.evaluation.parity import QUANTITIES, parity_figure
from forgefield.files import atomic_file, read_json

STYLE = {
    "font.size": 9,
    "axes.linewidth": 0.6,
    "axes.titlesize": 9,
    "svg.fonttype": "path",
    "svg.hashsalt": "forgefield",
}
NO_DATE = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}  # so that equal numbers give equal bytes
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
        UserError: the run has not been evaluated, or the color map is unknown.
    """
    if config.colormap not in colormaps:
        nearest = get_close_matches(config.colormap, colormaps, n=1, cutoff=0.0)[0]
        raise UserError(f"plots.colormap: matplotlib has no color map {config.colormap!r}; did you mean {nearest!r}?")
    if not (run / "metrics.json").exists():
        raise UserError(f"{run}: no metrics.json; evaluate the run first with `forgefield evaluate`")
    splits = read_json(run / "metrics.json")["splits"]
    split = "test" if "test" in splits else next(iter(splits))
    metrics = splits[split]
    paths = []
    with rc_context(STYLE):
        for name, quantity in QUANTITIES.items():
            panels = [(v, t) for v, t in TITLES[name] if v in metrics] or [("trained", "trained from scratch")]
            if metrics[panels[0][0]].get(quantity.name, {"n": 0})["n"]:
                figure = parity_figure(run / f"predictions_{split}.h5", quantity, panels, metrics, config.colormap)
                paths += _save(figure, run / f"parity_{name}", config)
        paths += _save(learning_curve_figure(run / "history.csv"), run / "learning_curve", config)
    return paths


def _save(figure: Figure, stem: Path, config: PlotsConfig) -> list[Path]:
    paths = [stem.with_suffix(f".{name}") for name in config.formats]
    for path, name in zip(paths, config.formats, strict=True):
        with atomic_file(path) as temporary:
            figure.savefig(temporary, format=name, dpi=config.dpi, metadata=NO_DATE.get(name))
    return paths
