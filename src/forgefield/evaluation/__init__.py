"""Predictions of trained models beside the reference, their errors, parity plots and tables."""
