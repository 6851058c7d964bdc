"""What a person may ask of the HyperPod dependencies chart, which must be in the cluster before HyperPod is."""

from __future__ import annotations

from typing import Any, Self

from pydantic import Field, model_validator

from dpd_infra.spec.base import Spec, StrictBool, StrictInt

DEFAULT_CHART_REVISION = "9f496a6364759553f73ff534434a057ef4bdc004"
"""The revision of aws/sagemaker-hyperpod-cli that AWS's own Terraform modules pin for clusters without restricted instance groups
(awsome-distributed-ai)."""


class DependenciesSpec(Spec):
    """The chart with the device plugins and the health-monitoring agent, published in no chart repository: `dpd fetch-chart` packs it."""

    revision: str = Field(default=DEFAULT_CHART_REVISION, pattern=r"^[0-9a-f]{40}$")
    """The commit of aws/sagemaker-hyperpod-cli whose chart is used; the archive is `charts/hyperpod-dependencies-<revision>.tgz`."""
    oci: str | None = Field(default=None, pattern=r"^oci://.+$")
    """An OCI reference to a copy of the chart in a registry of yours, instead of the archive."""
    oci_version: str | None = None
    """The chart version under `oci`."""
    preinstalled: StrictBool = False
    """The chart is in the cluster already: install nothing."""
    values: dict[str, Any] = Field(default_factory=dict)
    """Helm values merged over ours, key by key."""
    timeout_minutes: StrictInt = Field(default=15, ge=1)
    """How long the release may take. Its pods start only when nodes join, so it is not waited for."""

    @property
    def archive(self) -> str:
        """Where the packed chart of this revision is, relative to the project's folder."""
        return f"charts/hyperpod-dependencies-{self.revision}.tgz"

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if self.preinstalled and self.oci:
            message = "preinstalled and oci exclude each other: a chart that is there already is not installed from anywhere"
            raise ValueError(message)
        if (self.oci is None) != (self.oci_version is None):
            message = "oci and ociVersion go together: an unpinned chart changes under a running cluster"
            raise ValueError(message)
        return self
