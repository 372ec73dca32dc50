"""Interatomic potentials: their files, their energy functions, and inference with them."""
