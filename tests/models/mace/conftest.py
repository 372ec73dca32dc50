"""Small mace-torch models of every kind; makes the comparison with mace-torch importable."""

import sys
from pathlib import Path

import numpy as np
import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent))

AGNOSTIC, RESIDUAL = "RealAgnosticInteractionBlock", "RealAgnosticResidualInteractionBlock"
DENSITY = "RealAgnosticDensityInteractionBlock"
DENSITY_RESIDUAL = "RealAgnosticDensityResidualInteractionBlock"
ATTENTION = "RealAgnosticAttResidualInteractionBlock"
NONLINEAR = "RealAgnosticResidualNonLinearInteractionBlock"

VARIANTS = {
    "scalars": {},
    "plain": {"cls": "MACE", "interaction_cls_first": RESIDUAL},
    "vectors": {"hidden_irreps": "4x0e+4x1o", "correlation": 3, "use_reduced_cg": True},
    "three_layers": {
        "hidden_irreps": "2x0e+2x1o+2x2e",
        "num_interactions": 3,
        "keep_last_layer_irreps": True,
        "correlation": [2, 1, 1],
    },
    "one_layer": {"num_interactions": 1, "max_ell": 3, "correlation": 3},
    "fourth_order": {"correlation": [4, 1], "max_ell": 1},
    "fourth_degree": {"correlation": [1, 2], "max_ell": 4},
    "density": {
        "interaction_cls": DENSITY_RESIDUAL,
        "interaction_cls_first": DENSITY,
        "hidden_irreps": "4x0e+4x1o",
        "pair_repulsion": True,
        "distance_transform": "Agnesi",
    },
    "attention": {"interaction_cls": ATTENTION, "interaction_cls_first": ATTENTION, "hidden_irreps": "4x0e+4x1o"},
    "nonlinear": {
        "interaction_cls": NONLINEAR,
        "interaction_cls_first": NONLINEAR,
        "hidden_irreps": "4x0e+4x1o",
        "edge_irreps": "3x0e+3x1o+3x2e",
        "use_edge_irreps_first": True,
        "keep_last_layer_irreps": True,
        "use_last_readout_only": True,
        "readout_cls": "NonLinearBiasReadoutBlock",
        "use_agnostic_product": True,
        "apply_cutoff": False,
    },
    "edges": {"edge_irreps": "3x0e+3x1o", "gate": torch.abs},
    "gaussian": {"radial_type": "gaussian", "r_max": 3.1, "distance_transform": "Soft", "gate": torch.tanh},
    "chebyshev": {"radial_type": "chebyshev", "apply_cutoff": False, "gate": None},
    "row_of_shifts": {"atomic_energies": np.array([[-1.0, -2.0, -3.0]]), "atomic_inter_shift": [0.1]},
}
"""Arguments of mace-torch's classes, beside those of the smallest model."""


@pytest.fixture(scope="session")
def build_mace():
    """A function that builds a small mace-torch model for H, C and O; keywords override its arguments."""
    from forgefield.models.mace.torch_reference import quiet_mace

    def make(cls: str = "ScaleShiftMACE", dtype: torch.dtype = torch.float32, seed: int = 0, **changes):
        with quiet_mace():
            from e3nn import o3
            from mace import modules

            arguments = {
                "r_max": 3.0,
                "num_bessel": 4,
                "num_polynomial_cutoff": 5,
                "max_ell": 2,
                "interaction_cls": RESIDUAL,
                "interaction_cls_first": AGNOSTIC,
                "num_interactions": 2,
                "num_elements": 3,
                "hidden_irreps": "4x0e",
                "MLP_irreps": "5x0e",
                "atomic_energies": np.array([-1.0, -2.0, -3.0]),
                "avg_num_neighbors": 6.5,
                "atomic_numbers": [1, 6, 8],
                "correlation": 2,
                "gate": torch.nn.functional.silu,
                "use_reduced_cg": False,
                "radial_MLP": [8, 8],
            }
            if cls == "ScaleShiftMACE":
                arguments |= {"atomic_inter_scale": 0.8, "atomic_inter_shift": -0.1}
            for key, value in (arguments := arguments | changes).items():
                if key.startswith("interaction_cls"):
                    arguments[key] = modules.interaction_classes[value]
                elif key == "readout_cls":
                    arguments[key] = getattr(modules.blocks, value)
                elif key.endswith("irreps") and isinstance(value, str):
                    arguments[key] = o3.Irreps(value)
            torch.manual_seed(seed)
            torch.set_default_dtype(dtype)
            try:
                return getattr(modules, cls)(**arguments)
            finally:
                torch.set_default_dtype(torch.float32)

    return make


@pytest.fixture(params=VARIANTS)
def variant(request) -> dict:
    """Arguments for ``build_mace``: each kind of model in turn."""
    return VARIANTS[request.param]


@pytest.fixture(scope="session")
def save_mace():
    """A function that saves a module as mace-torch does."""
    from forgefield.models.mace.torch_reference import quiet_mace

    def save(module, path):
        with quiet_mace():
            torch.save(module, path)
        return path

    return save
