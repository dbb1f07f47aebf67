"""What a release would meet, looked at before anything is paid: `stillroom recipe check`."""

from stillroom.pipeline.checking.check import check
from stillroom.pipeline.checking.report import Report

__all__ = ["Report", "check"]
