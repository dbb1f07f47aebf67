"""The pipeline: price a recipe, run it in memory, publish the result, and verify it."""
