"""MACE (Batatia et al., NeurIPS 2022) in JAX, with the parameter names and shapes of mace-torch."""
