"""Models of a user's own code: architecture ``python``."""
