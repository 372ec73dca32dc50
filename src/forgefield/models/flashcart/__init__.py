"""FlashCart's models: their settings, their exchange with the package flashcart, and their import."""
