import jax
import numpy as np
import pytest

from forgefield.errors import UserError
from forgefield.trainers.parallel import JaxMesh, SingleDevice, choose_parallelism, data_mesh


def test_one_device_is_found_and_needs_no_mesh():
    single = choose_parallelism("single")
    assert (single.method, single.parts, single.local_parts, single.is_main) == ("single", 1, range(1), True)
    found = choose_parallelism()
    assert found.method == ("single" if len(jax.local_devices()) == 1 else "jax")
    assert choose_parallelism("jax").mesh.axis_names == ("data",)


def test_a_mesh_that_does_not_go_with_the_method():
    with pytest.raises(UserError, match="mesh: it goes with parallelism 'jax', not 'single'"):
        choose_parallelism("single", data_mesh())
    with pytest.raises(UserError, match="one axis named 'data' is expected, found model"):
        choose_parallelism("jax", jax.make_mesh((1,), ("model",), axis_types=(jax.sharding.AxisType.Auto,)))


@pytest.mark.parametrize("make", [SingleDevice, lambda: JaxMesh(data_mesh())])
def test_replicated_arrays_own_their_memory(make):
    values = np.zeros(1000, np.float32)
    placed = make().replicated({"w": values})
    values += 1
    assert not np.any(placed["w"])
