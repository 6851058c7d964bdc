"""What several graph tests share: an account, stand-ins for what other components make, and the check of tags."""

from __future__ import annotations

import importlib
import inspect
from functools import cache

import pulumi

from dpd_infra.components.account import Account
from dpd_infra.components.handles import NetworkHandle
from dpd_infra.plan.names import Naming
from tests.graph.mock_outputs import ACCOUNT, REGION
from tests.graph.recorder import Recorded, Recording

TAGS = {"dpd-infra:stack": "prod", "team": "inference"}

ACCOUNT_FACTS = Account(account_id=ACCOUNT, region=REGION, naming=Naming("inference", "prod", REGION), tags=TAGS)
"""An account with tags of its own."""


def network_handle(*resources: pulumi.Resource) -> NetworkHandle:
    """A network that somebody else made."""
    return NetworkHandle(
        zone="us-east-2b",
        vpc_id="vpc-given",
        gpu_subnet_ids=["subnet-gpu"],
        control_plane_subnet_ids=["subnet-a", "subnet-b"],
        node_security_group_ids=["sg-efa", "sg-nodes"],
        resources=resources,
    )


def assert_tagged(recording: Recording) -> None:
    """Every AWS resource whose class takes tags carries the account's, and a name."""
    taggable = [r for r in recording.custom if r.type.startswith("aws:") and _takes_tags(r.type)]
    assert taggable, "nothing taggable was made"
    missing = [r for r in taggable if not (r.inputs.get("tags", {}).items() >= TAGS.items() and r.inputs["tags"].get("Name"))]
    assert not missing, missing


@cache
def _takes_tags(type_: str) -> bool:
    """Whether the SDK's class for `aws:ec2/vpc:Vpc` has a `tags` argument: what is taggable is the provider's word, not ours."""
    _, module, name = type_.split(":")
    package = importlib.import_module(f"pulumi_aws.{module.split('/')[0]}")
    cls = getattr(package, name)
    return "tags" in inspect.signature(cls._internal_init).parameters


def names(resources: list[Recorded]) -> list[str]:
    """Their names, sorted."""
    return sorted(r.name for r in resources)
