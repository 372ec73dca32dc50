"""What a pickle says about an object, held without making the object."""

from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

import torch

from forgefield.models.mace.torch_messages import MissingPartError


class Record:
    """An inert stand-in for an object of a class that a pickle names.

    It keeps what the pickle passes to the class and afterwards to the object. For a torch module it offers what reading
    takes: attributes, items, ``state_dict`` and ``named_parameters``. ``type(record).__name__`` is the class's name. An
    attribute that it lacks is a :class:`~forgefield.models.mace.torch_messages.MissingPartError`.
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> "Record":
        record = super().__new__(cls)
        vars(record).update(args=args, kwargs=kwargs, state={}, items=[])
        return record

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Everything is kept by ``__new__``, which is all that some pickles call."""

    def __setstate__(self, state: Any) -> None:
        content, slots = state if isinstance(state, tuple) and len(state) == 2 else (state, None)
        self.state.update({str(k): v for part in (content, slots) if isinstance(part, dict) for k, v in part.items()})

    def append(self, item: Any) -> None:
        self.items.append(item)

    def extend(self, items: Any) -> None:
        self.items.extend(items)

    def __setitem__(self, key: Any, value: Any) -> None:
        self.items.append((key, value))

    def __getattr__(self, name: str) -> Any:
        if name in self.state:
            return self.state[name]
        for group in ("_parameters", "_buffers", "_modules"):
            if name in (self.state.get(group) or {}):
                return self.state[group][name]
        raise MissingPartError(name, type(self).__name__)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._members())

    def __getitem__(self, index: int) -> Any:
        return self._members()[index]

    def _members(self) -> list[Any]:
        """Of a module list or parameter list."""
        return [*self.state.get("_modules", {}).values(), *self.state.get("_parameters", {}).values()]

    def state_dict(self) -> dict[str, torch.Tensor]:
        return dict(self._tensors("", ("_parameters", "_buffers")))

    def named_parameters(self) -> Iterator[tuple[str, torch.Tensor]]:
        return self._tensors("", ("_parameters",))

    def parameters(self) -> Iterator[torch.Tensor]:
        return (tensor for _, tensor in self.named_parameters())

    def _tensors(self, prefix: str, groups: tuple[str, ...]) -> Iterator[tuple[str, torch.Tensor]]:
        transient = self.state.get("_non_persistent_buffers_set") or ()
        for group in groups:
            for name, tensor in (self.state.get(group) or {}).items():
                if isinstance(tensor, torch.Tensor) and name not in transient:
                    yield prefix + name, tensor
        for name, module in (self.state.get("_modules") or OrderedDict()).items():
            if isinstance(module, Record):
                yield from module._tensors(f"{prefix}{name}.", groups)


def record_class(module: str, name: str) -> type[Record]:
    """A stand-in for the class or function ``module.name``."""
    return type(name, (Record,), {"__module__": module})
