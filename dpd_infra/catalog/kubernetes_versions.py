"""Which Kubernetes versions HyperPod and the inference add-on both take."""

from __future__ import annotations

HYPERPOD_VERSIONS = ("1.30", "1.31", "1.32", "1.33", "1.34", "1.35")
"""EKS versions a HyperPod cluster takes (EKS prerequisites, newest copy)."""

INFERENCE_ADDON_VERSIONS = ("1.32", "1.33", "1.34", "1.35", "1.36", "1.37")
"""EKS versions the inference add-on takes (a live account's describe-addon-versions, 2026-10-04)."""

SUPPORTED_VERSIONS = tuple(version for version in HYPERPOD_VERSIONS if version in INFERENCE_ADDON_VERSIONS)
"""1.32 to 1.35: what both take."""

DEFAULT_VERSION = "1.33"
"""AWS's own Terraform modules' default (awsome-distributed-ai)."""
