"""KEDA autoscaling of model pods, of a role's pods or of the router: `autoScalingSpec` in all its places."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from dpd_infra.spec.base import StrictBool
from dpd_infra.spec.inference_endpoint_config.fields import CrdModel, Int32, Int32NotNegative, Number

PROMETHEUS_SERVER_PATTERN = (
    r"^https:\/\/aps-workspaces\.[a-zA-Z0-9-]+(?:\.[a-zA-Z0-9-]+)*\.amazonaws\.com\/workspaces\/ws-[a-zA-Z0-9-]+$|^$"
)
"""An Amazon Managed Prometheus workspace, without a path behind it (CRD)."""


class MetricType(StrEnum):
    """How the autoscaler compares a metric with its target."""

    VALUE = "Value"
    """The metric as it is."""
    AVERAGE = "Average"
    """The metric divided by the number of pods."""


class MetricDimension(CrdModel):
    """One CloudWatch dimension."""

    name: str
    """The dimension's name."""
    value: str
    """The dimension's value; `EndpointName` must equal the endpoint's name or no data arrives."""


class CloudWatchTrigger(CrdModel):
    """Scale on one CloudWatch metric."""

    activation_target_value: Number = 0
    """From which value on to scale from 0 to 1; read only where minReplicaCount is 0."""
    dimensions: tuple[MetricDimension, ...] | None = None
    """The metric's dimensions."""
    metric_collection_period: Int32 = 300
    """The period of the CloudWatch query, seconds."""
    metric_collection_start_time: Int32 = 300
    """How far back the query begins, seconds."""
    metric_name: str | None = None
    """The metric."""
    metric_stat: str = "Average"
    """The statistic of the query."""
    metric_type: MetricType = MetricType.AVERAGE
    """Per pod or absolute."""
    min_value: Number = 0
    """What to take where CloudWatch returns nothing."""
    name: str | None = None
    """The trigger's name."""
    namespace: str | None = None
    """The CloudWatch namespace."""
    target_value: Number | None = None
    """The value to keep the metric at."""
    use_cached_metrics: StrictBool = True
    """Ask once a polling interval and keep the answer."""


class PrometheusTrigger(CrdModel):
    """Scale on one query of an Amazon Managed Prometheus workspace."""

    activation_target_value: Number = 0
    """From which value on to scale from 0 to 1; read only where minReplicaCount is 0."""
    custom_headers: str | None = None
    """Headers to send with the query."""
    metric_type: MetricType = MetricType.AVERAGE
    """Per pod or absolute."""
    name: str | None = None
    """The trigger's name."""
    namespace: str | None = None
    """The namespace of namespaced queries."""
    query: str | None = None
    """The PromQL query."""
    server_address: str | None = Field(default=None, pattern=PROMETHEUS_SERVER_PATTERN)
    """The workspace's address, `https://aps-workspaces.<region>.amazonaws.com/workspaces/ws-…`."""
    target_value: Number | None = None
    """The value to keep the metric at."""
    use_cached_metrics: StrictBool = True
    """Ask once a polling interval and keep the answer."""


class AutoScaling(CrdModel):
    """When and how far to scale. A trigger list wins over the single trigger beside it (CRD)."""

    cloud_watch_trigger: CloudWatchTrigger | None = None
    """One CloudWatch trigger."""
    cloud_watch_trigger_list: tuple[CloudWatchTrigger, ...] | None = Field(default=None, max_length=100)
    """Several CloudWatch triggers, 100 at most."""
    cooldown_period: Int32NotNegative = 300
    """How long no trigger may have been active before scaling to 0, seconds."""
    initial_cooldown_period: Int32NotNegative = 300
    """How long after its creation cooldownPeriod begins to count, seconds."""
    max_replica_count: Int32NotNegative = 5
    """The most pods."""
    min_replica_count: Int32NotNegative = 1
    """The fewest pods; 0 scales to nothing."""
    polling_interval: Int32NotNegative = 30
    """How often each trigger is asked, seconds."""
    prometheus_trigger: PrometheusTrigger | None = None
    """One Prometheus trigger."""
    prometheus_trigger_list: tuple[PrometheusTrigger, ...] | None = Field(default=None, max_length=100)
    """Several Prometheus triggers, 100 at most."""
    scale_down_stabilization_time: Int32NotNegative = 300
    """How long fewer pods must have sufficed before some are taken away, seconds."""
    scale_up_stabilization_time: Int32NotNegative = 0
    """How long more pods must have been wanted before some are added, seconds."""
