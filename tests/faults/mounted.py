"""A training whose disk gets full, and then is read-only: `unshare -rm python mounted.py FOLDER METHOD`.

It needs a mount namespace of its own. FOLDER has the inputs of trainings; METHOD is one of those.
"""

import subprocess
import sys
import time
from pathlib import Path

from trainings import Ended, Trainings

from forgefield.trainers.checkpoints import saved_checkpoints
from forgefield.trainers.record import Place

SIZE, LIMIT = "2m", 60.0


def main(folder: Path, method: str) -> None:
    trainings = Trainings(folder, method)
    disk, output = trainings.base, trainings.base / "run"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", disk], check=True)

    ended = fill_up(trainings, disk / "filler")
    assert ended.code == 3, ended
    (error,) = ended.errors
    assert "No space left on device" in error, error
    assert error.endswith(f"training continues from {output / 'checkpoints'}"), error
    assert not [path for path in output.rglob(".*") if path.name != ".lock"]
    last = saved_checkpoints(output / "checkpoints")[0]
    (disk / "filler").unlink()

    subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
    ended = trainings.run("run", epochs=100_000)
    assert ended.code == 2, ended
    (error,) = ended.errors
    assert "Read-only file system" in error, error
    assert str(output) in error, error
    assert "Traceback" not in ended.stderr
    subprocess.run(["mount", "-o", "remount,rw", disk], check=True)

    place = Place.of(last)
    ended = trainings.run("run", epochs=place.epoch + 1)
    assert ended.code == 0, ended
    assert f"continues after {place}, step " in ended.stderr or "complete: " in ended.stderr, ended


def fill_up(trainings: Trainings, filler: Path) -> Ended:
    """Start a training and fill its disk once there are checkpoints."""
    start = time.monotonic()
    process = trainings.start("run", epochs=100_000)
    while len(saved_checkpoints(trainings.base / "run" / "checkpoints")) < 2:
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.05)
    while process.poll() is None:
        assert time.monotonic() - start < LIMIT, "it does not mind"
        try:
            with open(filler, "ab", buffering=0) as file:
                while True:
                    file.write(bytes(4096))
        except OSError:
            time.sleep(0.001)
    return Ended(process.returncode, process.stderr.read(), time.monotonic() - start)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
