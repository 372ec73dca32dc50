"""What is different now from when a training began, and whether it may be continued all the same."""

import json
import shutil
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from forgefield.config.messages import did_you_mean
from forgefield.config.training import ALLOWED, TrainingConfig
from forgefield.errors import UserError
from forgefield.trainers.checkpoints import newest_checkpoint
from forgefield.trainers.record import TrainingRecord
from forgefield.trainers.say import say

Changes = dict[str, tuple[Any, Any]]
EPOCHS = "training.epochs"
# what a run's directory holds of a training, and would be taken for that of the next one
RESULTS = (
    *("config.yaml", "metrics.json", "predictions_*.h5", "provenance.json", "model", "history.csv"),
    *("parity_*", "error_by_*", "learning_curve.*", "data_overview.*"),
)


def changed_keys(saved: Mapping[str, Any], present: Mapping[str, Any]) -> Changes:
    """Keys whose saved and present values differ, after the round trip through JSON."""
    present = json.loads(json.dumps(present))
    keys = sorted(saved.keys() | present.keys())
    return {k: (saved.get(k), present.get(k)) for k in keys if saved.get(k) != present.get(k)}


def in_words(changes: Changes, made_from: Mapping[str, str] | None = None) -> str:
    """All changes, each with its values where they are short, and with the file of a user that it was made from."""
    origins = {key: f" (made from {file})" for key, file in (made_from or {}).items()}
    return ", ".join(_in_words(key, *values) + origins.get(key, "") for key, values in changes.items())


def _in_words(key: str, saved: Any, present: Any) -> str:
    short = all(len(str(value)) < 20 for value in (saved, present))
    return f"{key} was {saved} and is now {present}" if short else f"{key} changed"


def refuse_changes(
    path: Path, content: Mapping[str, Any], changes: Changes, made_from: Mapping[str, str] | None = None
) -> None:
    """Raise a UserError for what decides the result and is not as it was in a checkpoint."""
    if changes:
        words = " ".join(f"--allow-changed {key}" for key in changes)
        place = TrainingRecord.read(content["record"]).place
        in_snakemake = f"{ALLOWED}='{' '.join(changes)}' snakemake ..."
        raise UserError(
            f"{path.parent}: the training is after {place}, and {in_words(changes, made_from)}; set it back to "
            f"continue, write `{words}` (or `{in_snakemake}`) to continue with it from there, or move this folder away "
            "to start again"
        )


def before_continuing(
    directory: Path,
    aside: Path,
    training: TrainingConfig,
    fingerprint: Mapping[str, Any],
    notes: Mapping[str, Any],
    allowed: Collection[str],
    made_from: Mapping[str, str] | None = None,
) -> list[str]:
    """Refuse, or say, what is different from when the newest checkpoint was written.

    The checkpoints and results of a training that is complete are moved to a new directory in ``aside``: what is asked
    for is another training.

    Args:
        directory: of all checkpoints, beside the results.
        aside: where they are moved.
        training: the present settings.
        fingerprint: what decides the result, by key.
        notes: what does not, by key.
        allowed: keys of ``fingerprint``, or of that in the checkpoint, that may have changed.
        made_from: files of the user, in words, by those keys of ``fingerprint`` that were made from them.

    Returns:
        What has changed and decides the result, a line each, if the training is continued.

    Raises:
        UserError: something else in ``fingerprint`` has changed and the training is not complete; or there is no such
            key as one of ``allowed``.
    """
    found = newest_checkpoint(directory)
    # a key may have gone since, as devices without balance: repeat
    _check_allowed(allowed, {**(found[1]["fingerprint"] if found else {}), **fingerprint}, notes)
    if found is None:
        return []
    path, content = found
    changes = changed_keys(content["fingerprint"], fingerprint)
    refused = {key: values for key, values in changes.items() if key not in allowed}
    record = TrainingRecord.read(content["record"])
    is_done = record.finished(training.epochs, training.early_stopping)
    if refused and (content["complete"] or is_done):
        kept = _set_aside(directory, aside)
        say(f"training starts anew, because {in_words(changes)}; all that is there of the one before is in {kept}")
        return []
    refuse_changes(path, content, refused, made_from)
    noted = changed_keys(content["notes"], notes)
    if changes:
        say(f"goes on as --allow-changed says, though {in_words(changes)}: no training in one go gives this result")
    if EPOCHS in noted and training.schedule.kind != "constant" and not is_done:
        changes[EPOCHS] = noted[EPOCHS]
    for line in _notes(noted, record, training):
        say(f"note: {line}")
    return [f"after {record.place}: {_in_words(key, *values)}" for key, values in changes.items()]


def _check_allowed(allowed: Collection[str], known: Mapping[str, Any], notes: Mapping[str, Any]) -> None:
    """Refuse keys that there are not, and say which need no leave."""
    free = {word: None for key in notes for word in key.split(" x ")}
    for key in allowed:
        if key not in known and key not in free:
            raise UserError(f"--allow-changed {key}: no such key{did_you_mean(key, {**known, **free})}")
        if key not in known:
            say(f"note: --allow-changed {key}: not needed, it may always change")


def _set_aside(directory: Path, aside: Path) -> Path:
    """Move checkpoints and results to a directory in ``aside`` with the number after the last; returns it.

    The results go first: if this is killed, the next start finds the checkpoints, and so does it again.
    """
    aside.mkdir(exist_ok=True)
    kept = aside / str(1 + max((int(path.name) for path in aside.iterdir() if path.name.isdecimal()), default=0))
    for path in [found for pattern in RESULTS for found in directory.parent.glob(pattern)]:
        # from such a kill, where the training was then asked for again: its results were made again
        if (before := directory / path.name).is_dir():
            shutil.rmtree(before)
        path.rename(before)
    return directory.rename(kept)


def _notes(changes: Changes, record: TrainingRecord, training: TrainingConfig) -> Iterator[str]:
    """What has changed that does not decide what a step computes."""
    if EPOCHS in changes:
        before, now = changes.pop(EPOCHS)
        if record.finished(now, training.early_stopping):
            yield f"{EPOCHS} was {before} and is now {now}: nothing is left to be trained"
        elif training.schedule.kind == "constant":
            yield f"{EPOCHS} was {before} and is now {now}: the same training as of {now} epochs in one go"
        else:
            yield (
                f"{EPOCHS} was {before} and is now {now}: from here on the learning rate is that of {now} epochs, but "
                f"the first {record.step} steps were made with that of {before}"
            )
    if changes:
        yield f"{in_words(changes)}; that does not change what a step computes, but for rounding"
