"""Release: the bundle, its certificate, its card, and the verifier that needs none of the rest."""

from stillroom.release.bundle import write_bundle
from stillroom.release.controls import Claim, Control
from stillroom.release.evaluation import Evaluation
from stillroom.release.made import Made
from stillroom.release.model import LinearModel, ReleasedModel
from stillroom.release.verifier import verify_bundle

__all__ = [
    "Claim",
    "Control",
    "Evaluation",
    "LinearModel",
    "Made",
    "ReleasedModel",
    "verify_bundle",
    "write_bundle",
]
