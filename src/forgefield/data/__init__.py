"""Reference data: from any file to fixed-shape batches."""
