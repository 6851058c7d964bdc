"""Handles: what one component needs of another, however that came to be.

A handle carries typed outputs, plain facts that names and rules need before anything is registered, the resources to depend on, and,
where Kubernetes is spoken to, the provider. It is built by our component, by a lookup, from another stack, or from plain values.
"""

from __future__ import annotations

from dpd_infra.components.handles.foundation import ControlPlaneHandle, NetworkHandle
from dpd_infra.components.handles.hyperpod import AddonsHandle, ClusterHandle, OperatorHandle

__all__ = ["AddonsHandle", "ClusterHandle", "ControlPlaneHandle", "NetworkHandle", "OperatorHandle"]
