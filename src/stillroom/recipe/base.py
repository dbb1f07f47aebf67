"""What every recipe says, whatever its method; a method's own recipe adds its sections."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import Field

from stillroom.data.loading import MODEL
from stillroom.errors import BadInput
from stillroom.features import TABLE, TableFeatures
from stillroom.recipe.common import (
    DataSection,
    DataWithPublicPart,
    EngineSection,
    FeaturesSection,
    PrivacySection,
)
from stillroom.recipe.section import Section


class Recipe(Section):
    """Everything a run depends on but the noise."""

    renamed: ClassVar[dict[str, str]] = {"data.public_size": "data.declared_size"}
    """Keys of earlier recipes and what they are called now."""
    method: str = Field("direct", description="how the model learns")
    mode: Literal["certified", "as-published"] = Field(
        "certified", description="sound, or a paper's algorithm as it was printed"
    )
    source: str = Field("trained", description="where the privacy comes from")
    ledger: str = Field(
        "ledger.sqlite", description="the ledger of these records, beside the recipe"
    )
    purpose: Literal["release", "benchmark", "audit"] = Field(
        "release", description="what the ledger is for"
    )
    data: DataSection
    features: FeaturesSection = FeaturesSection()
    engine: EngineSection = EngineSection()
    privacy: PrivacySection

    @property
    def sound_plain(self) -> bool:
        """Whether the method itself bounds and pays for all that an ordinary teacher tells it."""
        return False

    @property
    def only_labels(self) -> bool:
        """Whether the method protects labels alone, and takes the rest of the records as public."""
        return False

    @property
    def table(self) -> TableFeatures | None:
        """The features of a table; None where the records are of another kind.

        Raises:
            BadInput: they do not fit the schema.
        """
        schema = self.data.table
        return None if schema is None else TableFeatures(schema, self.features.pairs or ())

    @property
    def takes_tables(self) -> bool:
        """Whether the method, with the sections it has, learns from rows of a table."""
        return False

    def section(self, name: str) -> Any:
        """A section that this recipe may have; None where it has none of that name."""
        return getattr(self, name, None)

    def misfits(self) -> dict[str, bool]:
        """Keys that are fine by themselves and make no sense together: text -> whether they are."""
        return {
            **self.data.misfits(),
            **self.features.misfits(),
            **self._misfits_of_tables(),
            "source: a model in a file belongs to source plain; records are certified by source "
            "trained or ensemble, which need them": self.data.source == MODEL
            and self.source != "plain",
            "data.unit: this method, or its recipe as it is, protects more than labels": (
                self.data.unit == "label" and not self.only_labels
            ),
            "privacy.evaluation_records_per_person: only for unit person": (
                "evaluation_records_per_person" in self.privacy.model_fields_set
                and self.data.unit != "person"
            ),
        }

    def _misfits_of_tables(self) -> dict[str, bool]:
        """What has no meaning for rows of numbers and categories, found before anything is paid."""
        schema = self.data.table
        fault = ""
        if schema is not None:
            try:
                _ = self.table
            except BadInput as error:
                fault = f"{error.where}: {error.what}"
        return {
            fault: bool(fault),
            "features.name: a table with a schema has features of its own; write name = "
            f'"{TABLE}"': schema is not None and self.features.name != TABLE,
            f"features.name: {TABLE} needs a [data.schema]: what the columns mean, and their "
            "public ranges": schema is None and self.features.name == TABLE,
            "data.schema: networks look at pictures, and a table has none; use method direct with "
            "a linear layer, or method pg with linear heads": schema is not None
            and not self.takes_tables,
            "sketch: its basis is that of pictures, and a table has none": schema is not None
            and self.section("sketch") is not None,
            "data.unit: the schema names no person column": schema is not None
            and self.data.unit == "person"
            and schema.person is None,
        }


class RecipeWithPublicPart(Recipe):
    """A recipe whose method learns on public records: a share of the data is public."""

    data: DataWithPublicPart

    def misfits(self) -> dict[str, bool]:
        return {
            **super().misfits(),
            f"data.public: method {self.method} needs a public part": self.data.public == 0,
        }
