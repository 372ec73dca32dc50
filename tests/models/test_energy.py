from dataclasses import replace

import pytest

from forgefield.errors import UserError
from forgefield.models.energy import energy_function


def test_architecture_without_jax_is_refused(potential):
    with pytest.raises(UserError, match="'flashcart' does not run on JAX"):
        energy_function(replace(potential, architecture="flashcart"))
