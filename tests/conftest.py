"""Loaded before all tests."""

from importlib import import_module

# It tells onnxruntime to report nothing, which must come before some test loads that.
import_module("stillroom")
