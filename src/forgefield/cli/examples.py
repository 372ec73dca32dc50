"""Examples of every verb, which `--help` shows below its options; tests/cli/test_completion.py checks their words."""

MODEL = "results/runs/glycolaldehyde-hcno-gfn2-jax/model"

EXAMPLES = {
    "inspect": ["forgefield inspect train.extxyz", "forgefield inspect train.extxyz --json"],
    "init": ["forgefield init molecules.extxyz --model resources/foundation/hcno-gfn2"],
    "doctor": ["forgefield doctor", "forgefield doctor --json"],
    "convert": ["forgefield convert", "forgefield convert --config config/md22_nanotube.yaml --jobs 2"],
    "import-model": ["forgefield import-model"],
    "statistics": ["forgefield statistics"],
    "train": ["forgefield train my_run.yaml devices=2 training.lr=5e-4"],
    "test": ["forgefield test my_run.yaml devices=2", "forgefield test my_run.yaml --json"],
    "plot": ["forgefield plot my_run.yaml"],
    "runs": ["forgefield runs results/runs", "forgefield runs --json"],
    "report": ["forgefield report runs/my_run -o report.html"],
    "validate": ["forgefield validate results/datasets/glycolaldehyde/train.h5"],
    "predict": [f"forgefield predict {MODEL} molecules.xyz -o predicted.extxyz"],
    "export": [f"forgefield export {MODEL} -o glycolaldehyde.model"],
}

FIRST_STEPS = {
    "forgefield init data.xyz --model MODEL": "writes data.yaml",
    "forgefield train data.yaml": "trains; after a stop, continues",
    "forgefield test data.yaml": "errors, before and after training",
    "forgefield plot data.yaml": "parity, errors, learning curve",
    "forgefield report runs/data": "all of it on one page",
    "snakemake --configfile data.yaml": "the same, each stage when needed",
}


def examples_of(verb: str) -> str | None:
    """What the help of a verb ends with."""
    return _listed(EXAMPLES[verb]) if verb in EXAMPLES else None


def first_steps() -> str:
    """What the help of the whole program ends with."""
    width = max(map(len, FIRST_STEPS))
    return _listed([f"{command:{width}}  {meaning}" for command, meaning in FIRST_STEPS.items()])


def _listed(lines: list[str]) -> str:
    return "\n".join(["Examples:", *(f"  {line}" for line in lines)])
