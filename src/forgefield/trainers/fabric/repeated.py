"""Steps for which each process gets its own batches, as PyTorch's distributed sampler deals them (`balance: repeat`).

Where batches cannot be dealt out evenly, some are repeated or discarded: the number of processes changes what an epoch
consists of.
"""

from dataclasses import dataclass

import numpy as np
from torch.utils.data import DistributedSampler

from forgefield.data.dynamic_batches import even_batches, relative_work
from forgefield.data.plans import epoch_order
from forgefield.data.step_plans import DynamicSteps, FixedSteps, Steps, generator


@dataclass(frozen=True)
class RepeatedFixedSteps(FixedSteps):
    """Each process's structures by ``DistributedSampler``, so many at a time.

    ``drop_last`` discards structures so that all processes have the same number, and incomplete last batches; otherwise
    the first structures of the order are repeated.
    """

    def steps(self, epoch: int) -> Steps:
        own = np.array([self._own(part, epoch) for part in range(self.parts)])
        size = self.batch // self.parts
        if self.drop_last:
            own = own[:, : own.shape[1] - own.shape[1] % size]
        blocks = [own[:, start : start + size] for start in range(0, own.shape[1], size)]
        return _steps([list(block) for block in blocks])

    def _own(self, part: int, epoch: int) -> list[int]:
        rows = range(len(self.sizes.atoms))
        sampler = DistributedSampler(rows, self.parts, part, seed=self.seed, drop_last=self.drop_last)
        sampler.set_epoch(epoch)
        return list(sampler)


@dataclass(frozen=True)
class RepeatedDynamicSteps(DynamicSteps):
    """A batch of about the same work for each process, in each step those of similar work.

    Processes with fewer batches than others repeat their final one. One that has none computes that of another.
    ``drop_last`` discards batches that some processes have beyond the others.
    """

    def steps(self, epoch: int) -> Steps:
        order, rng = epoch_order(len(self.sizes.atoms), self.seed, epoch), generator(self.seed, epoch)
        work = relative_work(self.sizes)
        count = -(-len(order) * self.parts // self.batch)
        batches = even_batches(work, order, count, self.limit, rng)
        whole = len(batches) - len(batches) % self.parts
        heaviest = [work[batch].sum(axis=0).max() for batch in batches[:whole]]
        alike = np.argsort(heaviest, kind="stable").reshape(-1, self.parts)
        steps = [[batches[i] for i in step] for step in rng.permutation(alike)]
        last = batches[whole:]
        if last and not self.drop_last:
            final = steps[-1] if steps else last
            steps.append(last + [final[part % len(final)] for part in range(len(last), self.parts)])
        return _steps(steps)


def _steps(parts: list[list[np.ndarray]]) -> Steps:
    lengths = np.array([[len(part) for part in step] for step in parts])
    ends = np.cumsum(lengths.ravel()).reshape(lengths.shape)
    rows = np.concatenate([part for step in parts for part in step])
    return Steps(rows, np.column_stack([ends[:, -1] - lengths.sum(axis=1), ends]))
