"""The words of the specs that other rooms know too: closed vocabularies and names, without the models that use them.

It is read without pydantic: whoever checks a raw manifest needs the words and none of the models.
"""

from __future__ import annotations

from enum import StrEnum

from dpd_infra.catalog.sources import DPD_GUIDE, Source

PUBLISHED_EXAMPLE = Source("The published example: Llama 3.3 70B on two ml.p5.48xlarge", DPD_GUIDE.reference)
"""The manifest `dpd-test` of the DPD guide: where most of the short form's defaults come from."""


class Role(StrEnum):
    """The two halves of a disaggregated endpoint."""

    PREFILL = "prefill"
    DECODE = "decode"


class EfaRequests(StrEnum):
    """Whether roles ask for `vpc.amazonaws.com/efa`. Whether the operator does so by itself is not documented."""

    DOCUMENTED = "documented"
    """Ask for none, as the published example does."""
    EXPLICIT = "explicit"
    """Ask for the instance type's whole count: a role that has the node to itself."""
    FRACTION = "fraction"
    """Ask for the share that belongs to the role's GPUs: two roles on one node."""


class ArrivalProcess(StrEnum):
    """How requests come."""

    POISSON = "poisson"
    """Independently of each other."""
    UNIFORM = "uniform"
    """At equal distances."""
    BURSTY = "bursty"
    """In clusters: gamma distances with a coefficient of variation of 2."""


DEFAULT_ENVIRONMENT: dict[str, str] = {
    "HF_HOME": "/tmp/hf_home",  # noqa: S108 - the published example's path in the container
    "PYTHONHASHSEED": "0",
}
"""What every pod gets (published example). Without a fixed hash seed the decoder finds none of the prefiller's KV cache."""


DPD_ENVIRONMENT: dict[str, str] = {"LMCACHE_SAVE_DECODE_CACHE": "False"}
"""What a disaggregated endpoint gets beside PD_BUFFER_SIZE (published example)."""


PD_BUFFER_VARIABLE = "PD_BUFFER_SIZE"
"""Its number is `cache.pdBufferBytes`."""


RESERVED_VOLUME_NAMES = frozenset(
    {"shm", "model-weights-copy", "parallel-copy-configmap", "lmcache-config", "gated-model-downloader-configmap"}
)
"""Volume names that the operator uses itself (AWS documentation of the kubernetesVolume source)."""


class AccessPolicy(StrEnum):
    """The EKS access policies, by what they allow (EKS user guide, access policy permissions)."""

    CLUSTER_ADMIN = "clusterAdmin"
    ADMIN = "admin"
    EDIT = "edit"
    VIEW = "view"


class DeepHealthCheck(StrEnum):
    """What HyperPod runs on a GPU node before it takes work (SageMaker CreateCluster)."""

    INSTANCE_STRESS = "InstanceStress"
    INSTANCE_CONNECTIVITY = "InstanceConnectivity"


class Capacity(StrEnum):
    """How a group's nodes are bought. It cannot be changed after the group exists."""

    ON_DEMAND = "onDemand"
    SPOT = "spot"


class TaintEffect(StrEnum):
    """What a taint does to pods without a toleration."""

    NO_SCHEDULE = "NoSchedule"
    PREFER_NO_SCHEDULE = "PreferNoSchedule"
    NO_EXECUTE = "NoExecute"


class Egress(StrEnum):
    """How nodes reach what is outside the VPC."""

    NAT = "nat"
    """Through a NAT gateway: AWS's APIs, public images, the Hugging Face hub."""
    ENDPOINTS = "endpoints"
    """Not at all: AWS's APIs through interface endpoints in the VPC, and nothing else."""
