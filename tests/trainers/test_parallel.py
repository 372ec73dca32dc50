import jax
import numpy as np
import pytest

from forgefield.errors import UserError
from forgefield.trainers.parallel import choose_mesh, data_mesh, replicated


def test_one_device_needs_no_mesh():
    assert choose_mesh("single") is None
    assert (choose_mesh("auto") is None) == (len(jax.local_devices()) == 1)
    assert choose_mesh("jax").axis_names == ("data",)


def test_a_mesh_that_does_not_go_with_the_method():
    with pytest.raises(UserError, match="mesh"):
        choose_mesh("single", data_mesh())
    with pytest.raises(UserError, match="mesh"):
        choose_mesh("jax", jax.make_mesh((1,), ("model",), axis_types=(jax.sharding.AxisType.Auto,)))


@pytest.mark.parametrize("mesh", [None, "all devices"])
def test_replicated_arrays_own_their_memory(mesh):
    values = np.zeros(1000, np.float32)
    placed = replicated({"w": values}, mesh and data_mesh())
    values += 1
    assert not np.any(placed["w"])
