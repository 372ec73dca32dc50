"""How devices, in one process or in several, share every batch: ``single``, ``jax`` or ``mpi``."""

from forgefield.trainers.parallel.base import Parallelism
from forgefield.trainers.parallel.choose import METHODS, choose_parallelism
from forgefield.trainers.parallel.jax_mesh import AXIS, JaxMesh, data_mesh
from forgefield.trainers.parallel.single import SingleDevice

__all__ = ["AXIS", "METHODS", "JaxMesh", "Parallelism", "SingleDevice", "choose_parallelism", "data_mesh"]
