"""Release: the bundle, its certificate, its card, and the verifier that needs none of the rest."""

from stillroom.release.bundle import write_bundle
from stillroom.release.model import LinearModel, ReleasedModel
from stillroom.release.record import Artefact, Party, ReleaseRecord, classifier, classifier_record
from stillroom.release.sections.controls import Control
from stillroom.release.sections.evaluation import Evaluation
from stillroom.release.sections.published import Claim
from stillroom.release.verifier import verify_bundle

__all__ = [
    "Artefact",
    "Claim",
    "Control",
    "Evaluation",
    "LinearModel",
    "Party",
    "ReleaseRecord",
    "ReleasedModel",
    "classifier",
    "classifier_record",
    "verify_bundle",
    "write_bundle",
]
