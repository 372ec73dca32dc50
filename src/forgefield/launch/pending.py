"""Why jobs wait that can never start, and what to change."""

import re

# in the words of squeue; not what passes by itself: nodes that are down (PartitionNodeLimit, too), limits on all jobs
# of a user or a project
WAYS_OUT = {
    r"PartitionTimeLimit|\w+MaxWallDurationPerJob\w*|\w+MinutesPerJob\w*": "its time limit, slurm.hours",
    r"\w+MaxNodePerJob\w*|QOSMinNode": "the number of nodes, n_nodes",
    r"\w+MaxCpuPerJob\w*|QOSMinCpuNotSatisfied": "the cores, slurm.cpus_per_device x devices x n_nodes",
    r"\w+MaxMem(ory)?PerJob|MaxMemPerLimit|QOSMinMemory": "the memory, slurm.mem_mb",
    r"\w+MaxGRESPerJob|QOSMinGRES": "the GPUs, devices x n_nodes",
    r"InvalidAccount|Acc(oun)?t?NotAllowed": "slurm.account, or the partition",
    r"InvalidQOS|QOSNotAllowed": "slurm.qos, or the partition",
    r"PartitionConfig|BadConstraints": (
        "slurm.cpus_per_device, slurm.mem_mb, gpus, constraint or partition, or devices and n_nodes, for there are no "
        "nodes with all of what it asks for"
    ),
    r"DependencyNeverSatisfied|Reservation(Deleted|Invalid)": "slurm_extra",
}
# before the reason, in the state of such a job
WAITS = "waits for ever: "


def way_out(reason: str, partitions: str = "") -> str | None:
    """What is to be changed of a job that waits for this reason; None where it may start by itself.

    Of several ``partitions``, with commas between them, the reason is that of one.
    """
    if "," in partitions and re.match("Partition|BadConstraints", reason):
        return None
    return next((what for pattern, what in WAYS_OUT.items() if re.fullmatch(pattern, reason)), None)
