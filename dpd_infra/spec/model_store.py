"""What a person may ask of a model store: a private bucket, and the Hugging Face models that are copied into it once."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, StringConstraints, model_validator

from dpd_infra.spec.base import Spec, StrictBool, StrictInt
from dpd_infra.spec.endpoint.model import HuggingFaceToken
from dpd_infra.spec.teams import Amount, NamespaceName

StoredModelName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", max_length=40)]
"""A name of your choice for a model: it becomes part of a Kubernetes Job's name."""

DEFAULT_STAGING_IMAGE = "public.ecr.aws/docker/library/python:3.12-slim"
"""An image with Python and pip alone; a choice of this library. A closed network needs a copy of it with the two packages inside."""

DEFAULT_PACKAGES = ("huggingface_hub==0.34.4", "boto3==1.40.21")
"""What the staging job installs; pinned, a choice of this library."""


class StoredModel(Spec):
    """One model of the Hugging Face hub, copied into the bucket by a Kubernetes Job."""

    model_id: str = Field(pattern=r"^[a-zA-Z0-9_.-]+/[a-zA-Z0-9_.-]+$", examples=["meta-llama/Llama-3.3-70B-Instruct"])
    """`organisation/model`."""
    revision: str = Field(pattern=r"^[0-9a-f]{40}$", examples=["6f6073b423013f6a7d4d9f39144961bfbfbc386b"])
    """The commit, all 40 characters: a copy that is made once must say of what."""
    prefix: str | None = Field(default=None, pattern=r"^[A-Za-z0-9!_.*'()/-]*[A-Za-z0-9!_.*'()-]$")
    """The folder in the bucket. None: the part of `modelId` after the slash."""
    include: tuple[str, ...] = ("*.json", "*.safetensors", "*.model", "*.txt", "*.jinja", "tokenizer*")
    """Which files are copied, as shell patterns: weights as safetensors, configuration and tokenizer."""
    token: HuggingFaceToken | None = None
    """For gated models: where the token is."""

    @property
    def folder(self) -> str:
        """The folder in the bucket, without a closing slash."""
        return self.prefix or self.model_id.split("/", 1)[1]


class ModelStoreSpec(Spec):
    """A bucket for models: encrypted, closed to the public, over TLS only."""

    bucket: str | None = Field(default=None, pattern=r"^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$")
    """Its name, which endpoints give as `model.s3.bucket`. None: `<platform>-<stack>-models-<account>-<region>`."""
    models: dict[StoredModelName, StoredModel] = Field(default_factory=dict)
    """What is copied into it, by a name of your choice. An endpoint of the stack waits for all of it."""
    namespace: NamespaceName = "default"
    """Where the staging jobs run."""
    image: str = Field(default=DEFAULT_STAGING_IMAGE, min_length=1)
    """The jobs' image: Python 3.10 or later with pip, or with the packages inside."""
    packages: tuple[str, ...] = DEFAULT_PACKAGES
    """What the jobs install with pip first. Empty: the image holds huggingface_hub and boto3."""
    cpu: Amount = "4"
    """CPUs of a job's pod."""
    memory: Amount = "16Gi"
    """Memory of a job's pod. Files go through its disk one at a time, the largest of them some 5 GB."""
    disk: Amount = "40Gi"
    """Ephemeral disk of a job's pod."""
    timeout_minutes: StrictInt = Field(default=180, ge=5)
    """How long a copy may take."""
    protect: StrictBool = True
    """Have Pulumi refuse to delete the bucket. It is never emptied by Pulumi: with models in it S3 refuses too."""

    @model_validator(mode="after")
    def _folders_apart(self) -> Self:
        folders = [model.folder for model in self.models.values()]
        if twice := sorted({folder for folder in folders if folders.count(folder) > 1}):
            message = f"two models go into one folder, {', '.join(twice)}: give one of them a prefix"
            raise ValueError(message)
        return self
