"""The model of an endpoint: its name and the one place that its files come from."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, StringConstraints, model_validator

from dpd_infra.spec.base import Spec, StrictBool
from dpd_infra.spec.inference_endpoint_config.fields import CoreObject

Region = Annotated[str, StringConstraints(pattern=r"^[a-z]{2}(-[a-z]+)+-[0-9]$"), Field(examples=["us-east-2"])]
"""An AWS region, `us-east-2`."""


class S3Source(Spec):
    """A model in an S3 bucket, mounted by the S3 CSI driver."""

    bucket: Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$")] = Field(examples=["my-models"])
    """The bucket's name, not its URI."""
    prefix: str | None = None
    """The folder of the model in the bucket. None: the bucket itself."""
    region: Region | None = None
    """The bucket's region. None: the stack's."""


class FsxSource(Spec):
    """A model on an FSx for Lustre file system; its folder is `location`."""

    file_system_id: str = Field(min_length=1)
    """The file system, `fs-…`."""
    dns_name: str | None = None
    """Its DNS name; the operator finds it where it is left out."""
    mount_name: str | None = None
    """Its mount name."""


class HuggingFaceToken(Spec):
    """Where the Hugging Face token is: a Secret in the endpoint's namespace, or a secret of the stack's configuration."""

    secret_name: str | None = None
    """An existing Kubernetes Secret."""
    key: str | None = None
    """The key in that Secret."""
    config_key: str | None = None
    """A configuration key whose secret value becomes a Kubernetes Secret: `dpd-infra:huggingFaceToken`."""

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        in_secret = self.secret_name is not None and self.key is not None
        half = (self.secret_name is None) != (self.key is None)
        if half or in_secret == (self.config_key is not None):
            message = "say where the token is: either secretName with key, or configKey"
            raise ValueError(message)
        return self


class HuggingFaceSource(Spec):
    """A model of the Hugging Face hub, downloaded by an init container (operator 3.1.2); nodes need a way out."""

    model_id: str = Field(pattern=r"^[a-zA-Z0-9_.-]+/[a-zA-Z0-9_.-]+$", examples=["meta-llama/Llama-3.3-70B-Instruct"])
    """`organisation/model`."""
    revision: str | None = Field(default=None, pattern=r"^[0-9a-f]{40}$")
    """The commit, all 40 characters. None: the operator takes `main`, which may change between two pods."""
    token: HuggingFaceToken | None = None
    """For gated models. Only the init container sees it."""


class KubernetesVolumeSource(Spec):
    """A model on a volume of the cluster (operator 3.1.2); its folder is `location`."""

    volume: CoreObject = Field(min_length=1)
    """A core/v1 Volume without its name: `{persistentVolumeClaim: {claimName: llama-weights}}`."""

    @model_validator(mode="after")
    def _not_named(self) -> Self:
        if "name" in self.volume:
            message = "the volume takes the name of the worker's model volume: leave `name` out"
            raise ValueError(message)
        return self


class ModelSpec(Spec):
    """What is served. Exactly one of s3, fsx, huggingFace and kubernetesVolume says where it is."""

    name: str = Field(max_length=63, pattern=r"^[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}", examples=["my-model"])
    """The model's name in SageMaker and in the metrics, 63 characters at most (CRD)."""
    version: str | None = None
    """The model's version in SageMaker."""
    prefetch: StrictBool | None = None
    """Copy the files into memory before the server loads them, where they fit. None: the operator's default, no."""
    location: str | None = None
    """The model's folder in its source; for s3 it is `s3.prefix`."""
    s3: S3Source | None = Field(default=None, examples=[{"bucket": "my-models", "prefix": "Llama-3.3-70B-Instruct"}])
    """A bucket."""
    fsx: FsxSource | None = None
    """A file system."""
    hugging_face: HuggingFaceSource | None = None
    """The Hugging Face hub."""
    kubernetes_volume: KubernetesVolumeSource | None = None
    """A volume of the cluster."""

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        sources = {"s3": self.s3, "fsx": self.fsx, "huggingFace": self.hugging_face, "kubernetesVolume": self.kubernetes_volume}
        given = [name for name, source in sources.items() if source is not None]
        if len(given) != 1:
            message = f"a model comes from exactly one of {', '.join(sources)}; here are {', '.join(given) or 'none'}"
            raise ValueError(message)
        if self.s3 is not None and self.location is not None:
            message = "for s3 the folder is s3.prefix; location stands beside the other sources"
            raise ValueError(message)
        return self
