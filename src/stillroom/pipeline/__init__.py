"""The pipeline: recipe to price, to a result in memory, to a bundle on disk, and back by `verify`."""
