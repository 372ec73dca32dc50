"""The two sides of the comparison."""
