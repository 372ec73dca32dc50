"""Reading a torch file without running what it contains.

Of the pickled objects only tensors and plain containers are made. Everything else becomes a
:class:`~forgefield.models.mace.torch_record.Record` that says which class it was and what it held.
"""

import pickle
import zipfile
from collections import OrderedDict
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import torch

from forgefield.errors import UserError
from forgefield.models.mace.torch_messages import in_words
from forgefield.models.mace.torch_record import Record, record_class

DTYPES = {
    "DoubleStorage": torch.float64,
    "FloatStorage": torch.float32,
    "HalfStorage": torch.float16,
    "BFloat16Storage": torch.bfloat16,
    "LongStorage": torch.int64,
    "IntStorage": torch.int32,
    "ShortStorage": torch.int16,
    "CharStorage": torch.int8,
    "ByteStorage": torch.uint8,
    "BoolStorage": torch.bool,
}
NUMPY_SCALARS = ("f8", "f4", "i8", "i4")
CONTAINERS = {"set": set, "frozenset": frozenset, "list": list, "dict": dict, "tuple": tuple}


def read_pickle(path: Path) -> Record:
    """The object in a file written by ``torch.save``, inert, its tensors on the CPU wherever they were.

    Raises:
        UserError: the file is damaged or of another format.
    """
    with open(path, "rb") as file:
        content = _content(path, file)
    if isinstance(content, dict):
        raise UserError(
            f"{path}: holds a dictionary such as a state_dict or a checkpoint, expected a whole mace-torch model; "
            "save the whole module: torch.save(model, path)"
        )
    if not isinstance(content, Record):
        raise UserError(
            f"{path}: holds a {type(content).__name__}, expected a whole mace-torch model; "
            "save the module itself: torch.save(model, path)"
        )
    return content


def _content(path: Path, file: BinaryIO) -> Any:
    try:
        with zipfile.ZipFile(file) as archive:
            names = archive.namelist()
            if any(name.endswith("/constants.pkl") for name in names):
                raise UserError(f"{path}: a compiled TorchScript model; give the .model file that it was compiled from")
            root = next((n.removesuffix("data.pkl") for n in names if n.endswith("/data.pkl")), None)
            if root is None:
                raise UserError(f"{path}: no model saved by torch.save; give a mace-torch .model file")
            if f"{root}byteorder" in names and archive.read(f"{root}byteorder") != b"little":
                raise UserError(f"{path}: was saved on a big-endian machine; save it again on a little-endian one")
            with archive.open(f"{root}data.pkl") as pickled:
                return _Unpickler(pickled, archive, root).load()
    except UserError:
        raise
    except zipfile.BadZipFile:
        raise UserError(
            f"{path}: neither a whole file of torch.save nor of its present format; "
            "download it again, or load it with mace-torch and save it with torch.save"
        ) from None
    except Exception as error:  # damaged bytes can ask for anything
        raise UserError(
            f"{path}: damaged, or not written by torch.save ({in_words(error)}); download it again"
        ) from error


class _Unpickler(pickle.Unpickler):
    """Makes tensors and containers; every other class or function that the pickle names stays inert."""

    def __init__(self, file: Any, archive: zipfile.ZipFile, root: str) -> None:
        super().__init__(file)
        self._archive, self._root = archive, root
        self._storages: dict[str, torch.UntypedStorage] = {}

    def find_class(self, module: str, name: str) -> Any:
        return _find_class(module, name)

    def persistent_load(self, reference: Any) -> tuple[torch.UntypedStorage, torch.dtype]:
        """A storage, which torch keeps beside the pickle, and its type."""
        _, kind, key, _, _ = reference
        if key not in self._storages:
            data = bytearray(self._archive.read(f"{self._root}data/{key}"))
            empty = torch.UntypedStorage(0)
            self._storages[key] = torch.frombuffer(data, dtype=torch.uint8).untyped_storage() if data else empty
        return self._storages[key], DTYPES[kind.__name__]


@cache
def _find_class(module: str, name: str) -> Any:
    """One stand-in for each class, so that equal classes stay equal."""
    known = {
        ("collections", "OrderedDict"): OrderedDict,
        ("torch", "Size"): tuple,
        ("torch._utils", "_rebuild_tensor"): _tensor,
        ("torch._utils", "_rebuild_tensor_v2"): _tensor,
        ("torch._utils", "_rebuild_parameter"): _parameter,
        ("torch._utils", "_rebuild_parameter_with_state"): _parameter,
        ("_codecs", "encode"): _encode,
        ("numpy.core.multiarray", "scalar"): _numpy_scalar,
        ("numpy._core.multiarray", "scalar"): _numpy_scalar,
    }
    if module in ("builtins", "__builtin__") and name in CONTAINERS:
        return CONTAINERS[name]
    return known.get((module, name)) or record_class(module, name)


def _tensor(storage: Any, offset: int, size: Any, stride: Any, *_: Any) -> torch.Tensor:
    """A view of a storage; torch refuses sizes and strides that leave it."""
    data, dtype = storage
    return torch.empty(0, dtype=dtype).set_(data, offset, tuple(size), tuple(stride))


def _parameter(data: torch.Tensor, requires_grad: bool, *_: Any) -> torch.nn.Parameter:
    return torch.nn.Parameter(data, requires_grad=bool(requires_grad) and data.is_floating_point())


def _encode(text: str, encoding: str) -> bytes:
    """How pickles of old protocols write bytes."""
    if encoding != "latin1":
        raise ValueError(f"bytes written as {encoding}")
    return text.encode("latin1")


def _numpy_scalar(dtype: Record, data: bytes) -> Any:
    kind = dtype.args[0]
    if kind not in NUMPY_SCALARS:
        raise ValueError(f"a numpy scalar of type {kind}")
    return np.frombuffer(data, f"<{kind}")[0].item()
