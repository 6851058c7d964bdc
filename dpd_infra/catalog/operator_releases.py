"""The inference operator's releases: which add-on version holds which, when it came, and what it brought."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import total_ordering

from dpd_infra.catalog.sources import CACHING_ROUTING_GUIDE, GATEWAY_GUIDE, OPERATOR_NOTES, RELEASE_NOTES, Source

ADDON_NAME = "amazon-sagemaker-hyperpod-inference"
NAMESPACE = "hyperpod-inference-system"

_ADDON_VERSION = re.compile(r"v(\d+)\.(\d+)\.(\d+)-eksbuild\.(\d+)")


@total_ordering
@dataclass(frozen=True, slots=True)
class AddonVersion:
    """An EKS add-on version, `v1.4.0-eksbuild.1`, that compares by its numbers."""

    major: int
    minor: int
    patch: int
    build: int

    @classmethod
    def parse(cls, text: str) -> AddonVersion:
        """Raises `ValueError` for anything but `vN.N.N-eksbuild.N`."""
        match = _ADDON_VERSION.fullmatch(text)
        if match is None:
            message = f"{text!r} is not an add-on version: expected the form v1.4.0-eksbuild.1"
            raise ValueError(message)
        return cls(*(int(part) for part in match.groups()))

    def __lt__(self, other: AddonVersion) -> bool:
        return self._key() < other._key()

    def __str__(self) -> str:
        return f"v{self.major}.{self.minor}.{self.patch}-eksbuild.{self.build}"

    def _key(self) -> tuple[int, int, int, int]:
        return (self.major, self.minor, self.patch, self.build)


@dataclass(frozen=True, slots=True)
class OperatorRelease:
    """One release of the operator."""

    operator: str
    """The operator's own version, `3.2`."""
    addon_version: str | None
    """The first EKS add-on version that holds it; None for releases that came only as a Helm chart, or whose version is not published."""
    released: str | None
    """ISO date, None where not published."""
    brought: tuple[str, ...]
    """What it added or mended, one phrase each."""
    source: Source


RELEASES: tuple[OperatorRelease, ...] = (
    OperatorRelease("2.3", None, "2026-02-03", ("instanceTypes", "invocationEndpoint changes propagate"), RELEASE_NOTES),
    OperatorRelease(
        "3.0",
        "v1.0.0-eksbuild.1",
        "2026-02-23",
        ("the EKS add-on", "nodeAffinity", "tags on load balancers, certificates and objects"),
        RELEASE_NOTES,
    ),
    OperatorRelease(
        "3.1", None, "2026-04-03", ("spec.kubernetes", "tlsConfig.customCertificateConfig", "worker.requestLimits"), RELEASE_NOTES
    ),
    OperatorRelease(
        "3.1.2",
        "v1.2.0-eksbuild.1",
        "2026-05-06",
        (
            "dataCapture",
            "the huggingface source",
            "dnsConfig",
            "the kubernetesVolume source",
            "kubernetes.serviceAccountName",
            "replica counts of autoscaled endpoints kept on update",
        ),
        RELEASE_NOTES,
    ),
    OperatorRelease("3.1.3", "v1.2.1-eksbuild.1", None, ("KV-aware routing with LMCache 0.4.3 and vLLM 0.19.1",), CACHING_ROUTING_GUIDE),
    OperatorRelease(
        "3.2",
        "v1.3.0-eksbuild.1",
        "2026-06-12",
        ("disaggregated prefill and decode: pdSpec", "operator pods kept on amd64 nodes"),
        RELEASE_NOTES,
    ),
    OperatorRelease(
        "3.3",
        "v1.4.0-eksbuild.1",
        "2026-08-04",
        (
            "modelCacheConfig",
            "loadBalancer.idleTimeoutSeconds",
            "the routing Service is made even after an interrupted first reconcile (HTTP 503 with all health green)",
            "enableL1Cache: false and enableL2Cache: false are honoured",
        ),
        RELEASE_NOTES,
    ),
    OperatorRelease(
        "3.4",
        "v1.5.0-eksbuild.1",
        "2026-08-21",
        ("metricsSidecarResources", "metricsCollectorResources", "s3UploaderResources"),
        RELEASE_NOTES,
    ),
    OperatorRelease("gateway", "v2.0.0-eksbuild.2", None, ("the inference gateway: inferenceGateway",), GATEWAY_GUIDE),
    OperatorRelease("3.7", "v2.1.0-eksbuild.1", "2026-09-21", ("spec.kubernetes.tolerations",), OPERATOR_NOTES),
)

DPD_MINIMUM = AddonVersion.parse("v1.3.0-eksbuild.1")
"""The first add-on with pdSpec; on an older one DPD pods restart with EngineDeadError or TimeoutError (DPD troubleshooting)."""

DPD_PREFERRED = AddonVersion.parse("v1.4.0-eksbuild.1")
"""The first add-on without the missing routing Service and with L1/L2 cache switches that are honoured (release notes 3.3)."""

CLUSTER_ARN_NEEDED = AddonVersion.parse("v1.2.0-eksbuild.1")
"""From here on hyperpodClusterArn must be in the add-on's configuration (release notes 3.1.2)."""

DEFAULT_ADDON_VERSION = str(DPD_PREFERRED)


def release_of(addon_version: str) -> OperatorRelease | None:
    """The newest release that an add-on version is known to hold, or None below the first. Raises `ValueError` on a malformed version."""
    version = AddonVersion.parse(addon_version)
    held = [release for release in RELEASES if release.addon_version and AddonVersion.parse(release.addon_version) <= version]
    return held[-1] if held else None


def missing_below(addon_version: str, wanted: AddonVersion) -> tuple[str, ...]:
    """What the releases between an add-on version and a wanted one brought: what the older one lacks."""
    version = AddonVersion.parse(addon_version)
    return tuple(
        thing
        for release in RELEASES
        if release.addon_version and version < AddonVersion.parse(release.addon_version) <= wanted
        for thing in release.brought
    )
