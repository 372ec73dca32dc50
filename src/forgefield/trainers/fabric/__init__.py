"""The engine PyTorch, through Lightning Fabric: the same data, loss, steps and files as the engine JAX."""
