"""The command line: one module a group of commands; heavy imports live inside the commands."""
