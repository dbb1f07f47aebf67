"""stillroom."""
