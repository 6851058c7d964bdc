"""How an endpoint's fields are changed that the operator does not let change."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from dpd_infra.spec.base import Spec, StrictInt


class ChangeMode(StrEnum):
    """What becomes of an endpoint whose fixed fields are to change."""

    REFUSE = "refuse"
    """It is not changed: the check says so."""
    BLUE_GREEN = "blueGreen"
    """A new one under a new name, then the old one goes: no outage, and for a while nodes for both."""
    RECREATE = "recreate"
    """The old one goes, then a new one comes under the same name: an outage, and no more nodes."""


class ChangeSpec(Spec):
    """The way of a change that the operator refuses on a live endpoint: routing switched, disaggregation switched."""

    mode: ChangeMode = ChangeMode.REFUSE
    """refuse; blueGreen: raise `generation` in the same edit, and the new endpoint is made before the old one is deleted; recreate: raise
    `recreations` in the same edit, and the old one is deleted before the new one is made: nobody is served in between."""
    generation: StrictInt = Field(default=1, ge=1, le=9999)
    """From 2 on the name of the resource and of its SageMaker endpoint end in `-g2`: callers must be told. It stays as it is after the
    change, whatever `mode` says then."""
    recreations: StrictInt = Field(default=0, ge=0, le=9999)
    """How often it has been deleted and made anew under its name. It stays as it is after the change."""
