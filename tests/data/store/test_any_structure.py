"""Structures of every kind come back from a store as they went in, in whatever units it holds them."""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from forgefield.data.store import Store, StoreWriter
from forgefield.data.structures import Structure
from forgefield.units import ENERGY_UNITS, LENGTH_UNITS, Units

SIZES = st.one_of(st.just(1), st.integers(1, 40), st.just(1000))
CELLS = arrays(np.float64, (3, 3), elements=st.floats(-60, 60, allow_subnormal=False))
ENERGIES = st.floats(-1e8, 1e8, allow_subnormal=False)


@st.composite
def structures(draw):
    """One structure; what has a number for each atom is drawn by a seed, which is quicker than one by one."""
    n, random = draw(SIZES), np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    size = 10.0 ** draw(st.integers(-6, 6))
    return Structure(
        numbers=random.integers(1, 119, n),
        positions=size * random.normal(size=(n, 3)),
        cell=draw(CELLS),
        pbc=draw(arrays(bool, 3)),
        energy=draw(st.none() | ENERGIES),
        forces=draw(st.sampled_from([None, size * random.normal(size=(n, 3))])),
        virial=draw(st.none() | CELLS),
        source_index=draw(st.integers(0, 2**40)),
    )


def stored(content, units, dtype="float64"):
    """The structures as they come back."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "a.h5"
        layout = {"n_structures": len(content), "max_atoms": max(map(len, content)), "has_virial": True}
        with StoreWriter(path, units=units, dtype=dtype, attributes={}, **layout) as writer:
            writer.append(content)
        with Store(path) as store:
            return store.read(slice(None))


def assert_same(found, meant):
    np.testing.assert_array_equal(found.numbers, meant.numbers)
    np.testing.assert_array_equal(found.pbc, meant.pbc)
    assert found.source_index == meant.source_index
    for name, precision in {
        "positions": 1e-12,
        "cell": 1e-12,
        "energy": 1e-12,
        "forces": 1e-10,
        "virial": 1e-12,
    }.items():
        expected, value = getattr(meant, name), getattr(found, name)
        assert (value is None) == (expected is None)
        if expected is not None:
            np.testing.assert_allclose(value, expected, rtol=precision, atol=0)


UNITS = st.builds(Units, st.sampled_from(list(ENERGY_UNITS)), st.sampled_from(list(LENGTH_UNITS)))


@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(content=st.lists(structures(), min_size=1, max_size=5), units=UNITS)
def test_store_and_reload(content, units):
    for found, meant in zip(stored(content, units), content, strict=True):
        assert_same(found, meant)


def test_every_element():
    content = [Structure(np.arange(1, 119), np.random.default_rng(0).normal(size=(118, 3)), energy=-1.0)]
    assert_same(stored(content, Units("kJ/mol", "nm"))[0], content[0])
