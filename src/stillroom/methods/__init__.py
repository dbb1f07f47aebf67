"""The methods: one file each, wiring that reads like its algorithm, without maths of its own."""
