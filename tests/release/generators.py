"""Small generators to release: sketches and networks."""

from __future__ import annotations

import numpy as np
import pytest

from quick_onnx import use_quick_exporter
from release.making import linear, make
from stillroom.features.basis import Basis
from stillroom.models import AsPictures
from stillroom.public.generators import build_generator
from stillroom.public.mixture import Mixture
from stillroom.randomness import normals, uniforms
from stillroom.release import write_bundle
from stillroom.release.generator import SketchGenerator
from stillroom.release.torch_generator import NetworkGenerator

CLASSES = ("<b>", "two", "three")


def mixture(shape=(6, 6), classes=3, centres=2, kept=8, directions=3):
    """Classes far apart: each has a brightness of its own."""
    near = 0.05 * normals(1, "centres", size=(classes, centres, kept))
    near[:, :, 0] += np.linspace(1, 5, classes)[:, None]
    axes = np.linalg.qr(normals(1, "axes", size=(kept, directions)))[0]
    return Mixture(
        uniforms(1, "weights", size=(classes, centres)),
        near,
        axes,
        np.stack([0.01 * np.eye(directions)] * classes),
        Basis(*shape, kept),
    )


def sketch(full_scale=16.0, **settings):
    return SketchGenerator(mixture(**settings), full_scale, sharpen=0.5, warp=0.5)


def network(shape=(6, 6), full_scale=16.0, conditional=True, classes=3, model="conv"):
    generator = build_generator(
        model,
        AsPictures(shape, full_scale).given,
        classes,
        latent=5,
        width=8,
        conditional=conditional,
        seed=1,
    )
    return NetworkGenerator(generator, shape, full_scale, model)


def bundles(tmp_path_factory, generators, **classifiers):
    """A bundle per generator, by name, beside a linear classifier unless another one is given."""
    found = {}
    with pytest.MonkeyPatch.context() as patch:
        use_quick_exporter(patch)
        for name, generator in generators.items():
            folder = tmp_path_factory.mktemp(name)
            shape = (6, 6) if generator is None else generator.shape
            model = classifiers.get(name) or linear("pixels", shape)
            write_bundle(make(folder, model=model, generator=generator), folder / "bundle")
            found[name] = folder / "bundle"
    return found
