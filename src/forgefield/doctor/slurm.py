"""What a Slurm cluster offers, and the section `slurm` of the configuration that uses it."""

import getpass
import math
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from forgefield.doctor.findings import Finding
from forgefield.doctor.processes import find_program, run
from forgefield.doctor.slurm_mpi import try_mpi
from forgefield.errors import UserError

COMMANDS = ("sbatch", "srun", "squeue", "scancel", "scontrol", "sinfo")
LIMIT = 30.0
# with less, the plugin asks `sacct` instead of `squeue` (three times the profile's first wait)
LEAST_JOB_AGE = 60
MOST_HOURS, USUAL_MB, LEAST_MB = 24.0, 8000, 800

Keys = dict[str, str | int | float | bool]


class Partition(NamedTuple):
    """Equal nodes of a partition: cores, MB of memory and GPUs of each, and the time limit in hours, if any."""

    name: str
    is_default: bool
    hours: float | None
    nodes: int
    cores: int
    mem_mb: int
    gpus: int
    gpu_type: str | None


def examine() -> tuple[list[Finding], Keys]:
    """What there is to know about the cluster, and the configuration's section for it; takes a minute at most where
    the cluster answers, as two MPI ranks are started.

    Raises:
        UserError: no Slurm answers here.
    """
    if missing := [command for command in COMMANDS if find_program(command) is None]:
        raise UserError(f"doctor --slurm: no {', '.join(missing)} on the PATH; log in to a node of a Slurm cluster")
    answer = run(["sinfo", "--noheader", "--format=%P|%a|%l|%D|%c|%m|%G"], limit=LIMIT)
    if answer.error:
        raise UserError(f"doctor --slurm: sinfo: {answer.error}; ask the cluster's administrators")
    partitions = list(read_partitions(answer.stdout))
    if not partitions:
        raise UserError("doctor --slurm: sinfo shows no partition that is up; ask the cluster's administrators")
    account = _account()
    chosen = propose(partitions, account)
    found = [*_partitions(partitions), *_settings(), _account_finding(account), _trial(chosen), try_mpi(chosen)]
    return found, chosen


def read_partitions(table: str) -> Iterator[Partition]:
    """The partitions that are up, from lines of sinfo with ``%P|%a|%l|%D|%c|%m|%G``."""
    from forgefield.config.slurm import GPU_TYPE  # only here: probes do without the packages that it needs

    for line in table.splitlines():
        name, state, limit, nodes, cores, memory, gres = line.strip().split("|")
        gpu = re.search(r"gpu:(?:([^:,()]+):)?(\d+)(?![\w.-])", gres)
        if state == "up":
            yield Partition(
                name=name.rstrip("*"),
                is_default=name.endswith("*"),
                hours=_hours(limit),
                nodes=int(nodes),
                cores=int(cores.rstrip("+")),
                mem_mb=int(memory.rstrip("+")),
                gpus=int(gpu[2]) if gpu else 0,
                gpu_type=gpu[1] if gpu and GPU_TYPE.fullmatch(gpu[1] or "") else None,
            )


def _hours(limit: str) -> float | None:
    """Slurm's ``[days-]hours:minutes:seconds`` or ``minutes:seconds``."""
    if not (found := re.fullmatch(r"(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+)", limit)):
        return None
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return 24 * days + hours + minutes / 60 + seconds / 3600


def propose(partitions: Sequence[Partition], account: str | None) -> Keys:
    """The keys of the section for one device: a GPU where there are any."""
    best = max(partitions, key=lambda p: (p.gpus > 0, p.is_default, p.nodes * max(p.gpus, 1)))
    others = [p for p in partitions if not p.gpus and p.name != best.name]
    chosen: Keys = {"account": account} if account else {}
    chosen["partition"] = best.name
    if best.gpus:
        if others:
            chosen["cpu_partition"] = max(others, key=lambda p: (p.is_default, p.nodes)).name
        chosen["gpus"] = best.gpu_type or True
        chosen["cpus_per_device"] = max(best.cores // best.gpus, 1)
        chosen["mem_mb"] = max(best.mem_mb // best.gpus // 1000 * 1000, LEAST_MB)
    else:
        chosen["cpus_per_device"] = min(4, best.cores)
        chosen["mem_mb"] = max(min(USUAL_MB, best.mem_mb), LEAST_MB)
    # not beyond the partition's limit
    return chosen | {"hours": math.floor(100 * min(MOST_HOURS, best.hours or MOST_HOURS)) / 100}


def render(chosen: Keys) -> str:
    """The section as YAML."""
    values = {key: str(value).lower() if isinstance(value, bool) else value for key, value in chosen.items()}
    return "\n".join(["slurm:", *(f"  {key}: {value}" for key, value in values.items())])


def _partitions(partitions: Sequence[Partition]) -> Iterator[Finding]:
    for p in partitions:
        gpus = f", {p.gpus} {p.gpu_type or 'GPUs'} each" if p.gpus else ""
        limit = "no time limit" if p.hours is None else f"up to {p.hours:g} h"
        detail = f"{p.nodes} nodes of {p.cores} cores and {p.mem_mb} MB{gpus}; {limit}"
        yield Finding("slurm", p.name, "ok", f"{detail}; the default" if p.is_default else detail)


def _settings() -> Iterator[Finding]:
    """The settings of the cluster on which it depends how runs are started, watched and continued."""
    text = run(["scontrol", "show", "config"], limit=LIMIT).stdout
    found = {key.strip(): value.strip() for key, _, value in (line.partition("=") for line in text.splitlines())}
    yield Finding("slurm", "version", "ok", found.get("SLURM_VERSION", "not told"))
    age = int(re.match(r"\d*", found.get("MinJobAge", ""))[0] or 0)
    if age >= LEAST_JOB_AGE:
        yield Finding("slurm", "squeue", "ok", f"shows what became of jobs for {age} s")
    else:
        yield Finding("slurm", "squeue", "note", f"shows what became of jobs for {age} s only; sacct is asked instead")
    requeue = found.get("JobRequeue") == "1"
    yield Finding("slurm", "preemption", "ok", f"{found.get('PreemptMode', 'not told')}, JobRequeue {int(requeue)}")


def _account() -> str | None:
    """The account that the user's jobs are charged to, where Slurm keeps accounts."""
    words = ["sacctmgr", "--noheader", "--parsable2", "show", "user", getpass.getuser(), "format=DefaultAccount"]
    answer = run(words, limit=LIMIT)
    return next(iter(answer.stdout.split()), None) if answer.error is None else None


def _account_finding(account: str | None) -> Finding:
    if account:
        return Finding("slurm", "account", "ok", f"{account}, the default")
    return Finding("slurm", "account", "note", "no accounts are told here; leave the key account out")


def _trial(chosen: Keys) -> Finding:
    """Whether Slurm would accept a job with what is proposed; none is submitted."""
    words = ["sbatch", "--test-only", "--wrap=true", f"--cpus-per-task={chosen['cpus_per_device']}"]
    words += [f"--mem={chosen['mem_mb']}", f"--time={math.ceil(float(chosen['hours']) * 60)}"]
    words += [f"--{key}={chosen[key]}" for key in ("account", "partition") if key in chosen]
    if gpus := chosen.get("gpus"):
        words.append("--gres=gpu:1" if gpus is True else f"--gres=gpu:{gpus}:1")
    answer = run(words, limit=LIMIT)
    if answer.error:
        return Finding("slurm", "trial", "broken", f"sbatch --test-only: {answer.error}", "change the section below")
    return Finding("slurm", "trial", "ok", "Slurm would accept a job with the section below")
