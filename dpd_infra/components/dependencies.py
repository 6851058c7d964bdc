"""The HyperPod dependencies chart: device plugins and health agents, in the cluster before HyperPod is."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pulumi
import pulumi_kubernetes as kubernetes

from dpd_infra.components import tokens
from dpd_infra.components._base import Component, handle_of, minutes
from dpd_infra.components.account import Account
from dpd_infra.components.handles import ControlPlaneHandle
from dpd_infra.plan.project import Project, current_project
from dpd_infra.render.dependencies_values import dependencies_values
from dpd_infra.rules.parts import check_part
from dpd_infra.spec.dependencies import DependenciesSpec
from dpd_infra.stack import refuse_errors

RELEASE_NAME = "hyperpod-dependencies"
NAMESPACE = "kube-system"
"""The release's name and namespace, as the chart's guide installs it; its health agent makes the namespace aws-hyperpod."""


class HyperPodDependencies(Component):
    """The chart as a Helm release: from the packed archive, from a registry, or not at all where it is installed already."""

    token = tokens.HYPERPOD_DEPENDENCIES

    release: kubernetes.helm.v3.Release | None
    """None where the chart was installed by somebody else."""
    resources: tuple[pulumi.Resource, ...]
    """What must stand before the HyperPod cluster is made."""

    def __init__(
        self,
        name: str,
        spec: DependenciesSpec,
        *,
        account: Account,
        control_plane: ControlPlaneHandle,
        image_mirrors: Mapping[str, str] | None = None,
        project: Project | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """`project` is where the archive lies; None: the project the program runs in.

        `image_mirrors` says where the plugins' images are pulled from instead, by the beginning of their references.
        Raises `pulumi.RunError` for an archive that is not there, before anything is registered.
        """
        control_plane = handle_of(control_plane, ControlPlaneHandle, "control_plane")
        chart = chart_of(spec, project or current_project())
        refuse_errors(check_part(region=account.region, dependencies=spec))
        super().__init__(name, {"clusterName": control_plane.name}, opts)

        values = dependencies_values(account.region, spec.values, image_mirrors)
        self.release = self._release(name, spec, chart, values, control_plane) if chart else None
        self.resources = (self.release,) if self.release else control_plane.resources
        self.register_outputs({"chart": chart})

    def _release(
        self, name: str, spec: DependenciesSpec, chart: str, values: dict[str, Any], control_plane: ControlPlaneHandle
    ) -> kubernetes.helm.v3.Release:
        return kubernetes.helm.v3.Release(
            f"{name}-release",
            name=RELEASE_NAME,
            namespace=NAMESPACE,
            chart=chart,
            version=spec.oci_version,
            # The archive holds its subcharts: nothing is fetched on the way.
            dependency_update=False,
            # Its pods run on nodes, and the nodes come after it.
            skip_await=True,
            timeout=spec.timeout_minutes * 60,
            values=values,
            opts=self._child(
                provider=control_plane.kubernetes_provider,
                depends_on=control_plane.resources,
                timeouts=pulumi.CustomTimeouts(create=minutes(spec.timeout_minutes), update=minutes(spec.timeout_minutes)),
                # A release cannot be deleted once its cluster is gone, and need not be.
                deleted_with=control_plane.cluster_resource,
            ),
        )


def chart_of(spec: DependenciesSpec, project: Project) -> str | None:
    """Where Helm finds the chart.

    A path is relative to the working directory: a release differs when its path does, and must not do so from one machine to the next.
    """
    if spec.preinstalled:
        return None
    if spec.oci:
        return spec.oci
    archive = project.root / spec.archive
    if project.chart_required and not archive.is_file():
        raise pulumi.RunError(
            f"the HyperPod dependencies chart is not packed: {spec.archive} is missing in {project.root}; run `dpd fetch-chart`"
        )
    return Path(os.path.relpath(archive, Path.cwd())).as_posix()
