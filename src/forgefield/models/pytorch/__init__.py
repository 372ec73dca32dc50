"""Models in PyTorch: MACE from mace-torch, FlashCart, and those of a user's own code, behind one interface."""
