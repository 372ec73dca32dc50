"""Which settings of a training only one of the engines has."""

from forgefield.config.training import TrainingConfig

# key -> a value that only PyTorch's engine knows, and what to write instead
# (Muon in optax keeps its matrices in their own precision, in PyTorch in bfloat16)
ONLY_FABRIC = {
    "batching": ("dynamic", "fixed"),
    "balance": ("repeat", "exact"),
    "optimizer": ("muon", "adamw"),
    "precision": ("bf16-mixed", "float32"),
}


def refuse_foreign_settings(backend: str, parallelism: str, training: TrainingConfig) -> None:
    """Raise a ValueError for a setting that the other engine has."""
    if backend == "jax":
        for key, (value, other) in ONLY_FABRIC.items():
            if getattr(training, key) == value:
                raise ValueError(f"training.{key} is {value}, but backend is jax; write {other}, or backend: fabric")
        if training.micro_batches > 1:
            raise ValueError(
                f"training.micro_batches is {training.micro_batches}, but backend is jax; write 1, or backend: fabric"
            )
    else:
        if parallelism != "auto":
            raise ValueError(f"parallelism is {parallelism}, but backend fabric has its own; write parallelism: auto")
        if training.kernels != "auto":
            raise ValueError(f"training.kernels is {training.kernels}, but backend is fabric; write auto")
