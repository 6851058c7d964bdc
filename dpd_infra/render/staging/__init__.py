"""The staging job of a model: a Kubernetes Job that copies it from the Hugging Face hub into the store, once."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from importlib.resources import files
from typing import Any, Final

from dpd_infra.catalog.instance_types import INSTANCE_TYPES
from dpd_infra.plan.mirrors import mirrored
from dpd_infra.plan.names import DNS_LABEL_LIMIT, shorten
from dpd_infra.render.endpoint_roles import INSTANCE_TYPE_LABEL
from dpd_infra.spec.model_store import ModelStoreSpec, StoredModel

SCRIPT: Final = "copy_model.py"
"""What a job runs; it comes to it as a ConfigMap."""

TOKEN_KEY: Final = "token"  # noqa: S105 - the name of a key in a Secret
"""The key of the token in a Secret that is made from the stack's configuration."""

_MOUNT = "/staging"
_BACKOFF = 2
"""How often a failed pod is tried again: files that were copied are copied anew, so a lasting cause ends soon."""


def staging_script() -> str:
    """The script, as it is run."""
    return files(__name__).joinpath(SCRIPT).read_text(encoding="utf-8")


def job_name(store: str, name: str, model: StoredModel) -> str:
    """The Job's name: another revision, folder or choice of files is another Job, because a Job cannot be changed."""
    told = "\n".join((model.model_id, model.revision, model.folder, *model.include))
    return f"{shorten(f'{store}-{name}', DNS_LABEL_LIMIT - 9)}-{hashlib.sha256(told.encode()).hexdigest()[:8]}"


def render_job(
    spec: ModelStoreSpec,
    model: StoredModel,
    *,
    name: str,
    bucket: str,
    region: str,
    service_account: str,
    config_map: str,
    token_secret: tuple[str, str] | None,
    image_mirrors: Mapping[str, str],
) -> dict[str, Any]:
    """The Job's `metadata` and `spec`. `token_secret` is the name of a Secret of its namespace and the key in it.

    The pod runs as a user without rights, on a disk of its own, away from GPU nodes where others have room.
    """
    environment: list[dict[str, Any]] = [
        {"name": "MODEL_ID", "value": model.model_id},
        {"name": "REVISION", "value": model.revision},
        {"name": "BUCKET", "value": bucket},
        {"name": "PREFIX", "value": model.folder},
        {"name": "INCLUDE", "value": "\n".join(model.include)},
        {"name": "AWS_REGION", "value": region},
        {"name": "HOME", "value": "/tmp"},  # noqa: S108 - in the pod, on a volume of its own
        {"name": "HF_HUB_DISABLE_TELEMETRY", "value": "1"},
    ]
    if token_secret is not None:
        secret, key = token_secret
        environment.append({"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": {"name": secret, "key": key}}})
    install = f"pip install --quiet --user {' '.join(spec.packages)} && " if spec.packages else ""
    amounts = {"cpu": spec.cpu, "memory": spec.memory, "ephemeral-storage": spec.disk}
    container = {
        "name": "copy",
        "image": mirrored(spec.image, image_mirrors),
        "command": ["/bin/sh", "-ec", f"{install}python {_MOUNT}/{SCRIPT}"],
        "env": environment,
        "resources": {"requests": amounts, "limits": {"memory": spec.memory, "ephemeral-storage": spec.disk}},
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        "volumeMounts": [
            {"name": "script", "mountPath": _MOUNT, "readOnly": True},
            {"name": "work", "mountPath": "/tmp"},  # noqa: S108 - in the pod, on a volume of its own
        ],
    }
    pod = {
        "serviceAccountName": service_account,
        "restartPolicy": "Never",
        "securityContext": {"runAsNonRoot": True, "runAsUser": 1000, "fsGroup": 1000, "seccompProfile": {"type": "RuntimeDefault"}},
        "affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [_AWAY_FROM_GPUS]}},
        "containers": [container],
        "volumes": [{"name": "script", "configMap": {"name": config_map}}, {"name": "work", "emptyDir": {"sizeLimit": spec.disk}}],
    }
    labels = {"app.kubernetes.io/name": "model-staging", "app.kubernetes.io/managed-by": "dpd-infra"}
    return {
        "metadata": {"name": name, "namespace": spec.namespace, "labels": labels},
        "spec": {
            "backoffLimit": _BACKOFF,
            "activeDeadlineSeconds": spec.timeout_minutes * 60,
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }


_AWAY_FROM_GPUS: dict[str, Any] = {
    "weight": 100,
    "preference": {
        "matchExpressions": [
            {"key": INSTANCE_TYPE_LABEL, "operator": "NotIn", "values": sorted(name for name, kind in INSTANCE_TYPES.items() if kind.gpus)}
        ]
    },
}
