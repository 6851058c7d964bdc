"""Where the model's files come from: `spec.modelSourceConfig`."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from dpd_infra.spec.base import StrictBool
from dpd_infra.spec.inference_endpoint_config.fields import CrdModel, since


class ModelSourceType(StrEnum):
    """The kinds of sources."""

    FSX = "fsx"
    S3 = "s3"
    HUGGING_FACE = "huggingface"
    """From operator 3.1.2 on."""
    KUBERNETES_VOLUME = "kubernetesVolume"
    """From operator 3.1.2 on: a volume of `spec.kubernetes.volumes`."""


class S3Storage(CrdModel):
    """A bucket."""

    bucket_name: str
    """The bucket's name."""
    region: str
    """The bucket's region."""


class FsxStorage(CrdModel):
    """An FSx for Lustre file system."""

    dns_name: str | None = None
    """Its DNS name."""
    file_system_id: str
    """The file system, `fs-…`."""
    mount_name: str | None = None
    """Its mount name."""


class SecretKeyRef(CrdModel):
    """core/v1 SecretKeySelector."""

    key: str
    """The key in the Secret."""
    name: str = ""
    """The Secret, in the endpoint's namespace; an empty name finds nothing."""
    optional: StrictBool | None = None
    """Start without it where it is not there."""


class HuggingFaceModel(CrdModel):
    """A model of the Hugging Face hub (operator 3.1.2)."""

    commit_sha: str | None = Field(default=None, alias="commitSHA", pattern=r"^[0-9a-f]{40}$")
    """The commit, 40 characters; `main` where it is left out."""
    model_id: str = Field(pattern=r"^[a-zA-Z0-9_.-]+/[a-zA-Z0-9_.-]+$")
    """`organisation/model`."""
    token_secret_ref: SecretKeyRef | None = None
    """The token, given to the init container as HF_TOKEN and to nothing else."""


class ModelSourceConfig(CrdModel):
    """The source and the place in it."""

    fsx_storage: FsxStorage | None = None
    """For `fsx`."""
    hugging_face_model: HuggingFaceModel | None = Field(default=None, json_schema_extra=since("3.1.2"))
    """For `huggingface`."""
    model_location: str | None = None
    """The model's folder in the source."""
    model_source_type: ModelSourceType
    """Which source is read."""
    prefetch_enabled: StrictBool = False
    """Copy the files into memory before the server loads them, where they fit."""
    s3_storage: S3Storage | None = None
    """For `s3`."""
