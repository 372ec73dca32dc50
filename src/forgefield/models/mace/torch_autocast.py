"""Parts of a model that stay in float32 where the rest runs in mixed precision."""

import torch
from torch import Tensor


def without_autocast(module: torch.nn.Module) -> None:
    """Let a module, which is changed in place, compute in float32 where autocast is on."""
    compute = module.forward

    def forward(*inputs: Tensor | None) -> Tensor:
        device = inputs[0].device.type
        if not torch.is_autocast_enabled(device):
            return compute(*inputs)
        with torch.autocast(device, enabled=False):
            return compute(*(x.float() if x is not None and x.is_floating_point() else x for x in inputs))

    module.forward = forward
