"""What the Pulumi providers refuse of a program before any service is asked, and what this rehearsal does not simulate."""

from __future__ import annotations

from dpd_infra.catalog.sources import Source, thread
from dpd_infra.rehearsal.world.rule import ASSUMED, WorldRule

_BRIDGE = Source("Pulumi providers", "pulumi/pulumi-terraform-bridge, pkg/tfbridge/provider.go: unrecognized resource type")
_HERE = Source("What the simulated account knows", "docs/rehearse.md of this project")

TYPE = WorldRule("provider-type", "A provider has the types of its schema.", "unrecognized resource type (Check): {token}", _BRIDGE)
REGION = WorldRule(
    "provider-region",
    "pulumi-aws knows its region.",
    'missing required configuration key "aws:region": The region where AWS operations will take place. Examples are us-east-1, us-west-2, '
    "etc. Set a value using the command `pulumi config set aws:region <value>`",
    thread("pulumi/pulumi", 8837),
)
NATIVE_REGION = WorldRule(
    "provider-region-native",
    "pulumi-aws-native knows its region.",
    'missing required configuration key "aws-native:region": The region where AWS operations will take place. Examples are us-east-1, '
    "us-west-2, etc. Set a value using the command `pulumi config set aws-native:region <value>`",
    thread("pulumi/pulumi-aws-native", 264),
)
RESOURCE_IS_THERE = WorldRule(
    "provider-resource-there",
    "What is updated exists.",
    "reading {token} ({id}): couldn't find resource",
    thread("terraform-aws-modules/terraform-aws-eks", 2045),
)
HYPERPOD_IS_THERE = WorldRule(
    "hyperpod-there",
    "The HyperPod cluster that is asked for exists.",
    "reading resource state: operation READ failed: ResourceNotFoundException: cluster {arn} does not exist",
    Source("Cloud Control GetResource", "Cloud Control API reference: ResourceNotFoundException"),
    verbatim=False,
)
ONE_OF_AN_ID = WorldRule("one-of-an-id", "An id is one resource's.", "{token} {id} already exists", ASSUMED, verbatim=False)
COMPONENT = WorldRule(
    "rehearsal-component",
    "The rehearsal has the remote components of pulumi-eks that its page names.",
    "the rehearsal does not simulate the remote component {token}",
    _HERE,
)
FUNCTION = WorldRule(
    "rehearsal-function",
    "The rehearsal answers the functions that its page names.",
    "the rehearsal does not simulate the function {token}",
    _HERE,
)
METHOD = WorldRule("rehearsal-method", "The rehearsal answers no methods.", "the rehearsal does not simulate the method {token}", _HERE)
DEFAULT_VPC = WorldRule(
    "rehearsal-default-vpc",
    "The rehearsal's account has no default VPC.",
    "the rehearsal has no default VPC: give the eks.Cluster its subnets",
    _HERE,
)

RULES = tuple(value for value in list(globals().values()) if isinstance(value, WorldRule))

INJECTED = WorldRule("injected-fault", "A fault that somebody asked for.", "{message}", _HERE)
"""No rule of any service, and in no table: what a fault says."""
