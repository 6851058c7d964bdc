"""A changed value for each field of a stack file: what docs/changes.md is derived from. A field without one is drawn from its type."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field, replace
from typing import Any

KEY = "arn:aws:kms:us-east-2:111122223333:key/12345678"
ROLE = "arn:aws:iam::111122223333:role/deployer"
S3 = {"bucket": "my-models", "prefix": "Llama-3.3-70B-Instruct"}
AUTOSCALING = {"minReplicaCount": 1, "maxReplicaCount": 1}
ENDPOINT: dict[str, Any] = {
    "model": {"name": "Llama-3.3-70B-Instruct", "s3": S3},
    "instanceType": "ml.p5.48xlarge",
    "prefill": {"replicas": 1},
    "decode": {"replicas": 1},
}
GROUPS = {"gpu": {"instanceType": "ml.p5.48xlarge", "count": 4}, "system": {"instanceType": "ml.c5.4xlarge", "count": 3}}

OWN: dict[str, Any] = {
    "aws:region": "us-east-2",
    "dpd-infra:platform": {
        "name": "inference-dev",
        "network": {"zone": "us-east-2a"},
        "controlPlane": {"version": "1.33", "publicAccessCidrs": ["203.0.113.0/24"]},
        "instanceGroups": GROUPS,
        "modelBuckets": ["my-models"],
    },
    "dpd-infra:endpoints": {"llama": ENDPOINT},
}
"""A platform of its own with one endpoint."""

ENDPOINTS: dict[str, Any] = {
    "aws:region": "us-east-2",
    "dpd-infra:operator": {"addonVersion": "v1.4.0-eksbuild.1"},
    "dpd-infra:endpoints": {"llama": ENDPOINT},
}
"""Endpoints for another stack's operator."""

EXISTING: dict[str, Any] = {
    "aws:region": "us-east-2",
    "dpd-infra:platform": {
        "name": "inference-dev",
        "existing": {
            "network": {
                "vpcId": "vpc-0a",
                "zone": "us-east-2a",
                "gpuSubnetIds": ["subnet-0a"],
                "controlPlaneSubnetIds": ["subnet-0b", "subnet-0c"],
                "nodeSecurityGroupIds": ["sg-0a", "sg-0b"],
            },
            "controlPlane": {"name": "their-eks"},
            "cluster": {
                "arn": "arn:aws:sagemaker:us-east-2:123456789012:cluster/abcdefghij12",
                "name": "their-hyperpod",
                "instanceGroups": GROUPS,
            },
            "addons": True,
        },
        "modelBuckets": ["my-models"],
    },
    "dpd-infra:endpoints": {"llama": ENDPOINT},
}
"""A platform on two clusters that are there."""

NETWORK: dict[str, Any] = copy.deepcopy(OWN)
"""A platform in a network that is there."""
NETWORK["dpd-infra:platform"] |= {"existing": {"network": EXISTING["dpd-infra:platform"]["existing"]["network"]}}
del NETWORK["dpd-infra:platform"]["network"]

EKS: dict[str, Any] = copy.deepcopy(OWN)
"""A platform on an EKS cluster that is there, in a network of its own within that cluster's VPC."""
EKS["dpd-infra:platform"] |= {
    "existing": {"controlPlane": {"name": "their-eks"}, "addons": ["coredns"]},
    "network": {"zone": "us-east-2a", "cidr": "10.50.0.0/16", "gpuCidr": "10.50.128.0/18", "routeTableId": "rtb-0a"},
}
del EKS["dpd-infra:platform"]["controlPlane"]

BASES = {"own": OWN, "endpoints": ENDPOINTS, "existing": EXISTING, "network": NETWORK, "eks": EKS}

MODEL = {"modelId": "meta-llama/Llama-3.3-70B-Instruct", "revision": "6f6073b423013f6a7d4d9f39144961bfbfbc386b"}
REVISION = "a" * 40
NAMES = {
    "platform.instanceGroups.*": "gpu",
    "platform.existing.cluster.instanceGroups.*": "gpu",
    "platform.controlPlane.access.*": "ci",
    "platform.modelStore.models.*": "llama",
    "platform.teams.*": "research",
    "platform.teams.*.members.*": "ann",
    "endpoints.*": "llama",
}
"""Which entry of a mapping a sample changes."""


@dataclass(frozen=True)
class Sample:
    """One change of one field."""

    new: Any = None
    """The value after the change. None: drawn from the field's type."""
    base: str = ""
    """The stack: `own`, `existing` or `endpoints`. Empty: by the field's section."""
    around: dict[str, Any] = field(default_factory=dict)
    """What both stacks have beside the base, by field path with the entries' names."""
    beside: dict[str, Any] = field(default_factory=dict)
    """What has to change with it."""
    old: Any = None
    """The value before the change. None: the base's, or the default."""


def _endpoint(new: Any = None, **around: Any) -> Sample:
    return Sample(new, "endpoints", {f"endpoints.llama.{key.replace('__', '.')}": value for key, value in around.items()})


LOAD = {"requestsPerSecond": 1.0, "inputTokens": {"mean": 4000.0}, "outputTokens": {"mean": 200.0}}
_HUGGING_FACE = {"name": "Llama-3.3-70B-Instruct", "huggingFace": {**MODEL, "token": {"secretName": "hf", "key": "token"}}}
_FSX = {"name": "Llama", "fsx": {"fileSystemId": "fs-0123456789abcdef0"}, "location": "llama"}
_VOLUME = {"name": "Llama", "kubernetesVolume": {"volume": {"persistentVolumeClaim": {"claimName": "one"}}}, "location": "llama"}
_STORE = {"platform.modelStore": {"models": {"llama": MODEL}}}
_TEAM: dict[str, Any] = {"platform.teams": {"research": {"quota": {"gpus": 8}, "members": {"ann": {"user": "ann"}}}}}
_INVOKE = {"platform.teams": {"research": {"invoke": {"endpoints": ["llama"], "roles": ["app"]}}}}
_ACCESS = {"platform.controlPlane.access": {"ci": {"principalArn": "arn:aws:iam::111122223333:role/ci"}}}
_VALUES = {
    "platform.existing.controlPlane.values": {
        "version": "1.33",
        "endpoint": "https://their-eks.gr7.us-east-2.eks.amazonaws.com",
        "certificateAuthority": "LS0tLS1CRUdJTg==",
        "oidcIssuer": "oidc.eks.us-east-2.amazonaws.com/id/0123456789ABCDEF0123456789ABCDEF",
        "clusterSecurityGroupId": "sg-0c",
        "vpcId": "vpc-0a",
    }
}
_TAINT: dict[str, Any] = {
    "platform.instanceGroups.gpu": {
        "instanceType": "ml.c5.4xlarge",
        "count": 1,
        "taints": [{"key": "team", "value": "a", "effect": "NoSchedule"}],
    },
    "endpoints": {},
}
_ASSUME = {"aws.assumeRole": {"roleArn": ROLE}}
_TLS = {
    "tls": {
        "certificateArn": "arn:aws:acm:us-east-2:111122223333:certificate/12345678-1234-1234-1234-123456789012",
        "domainName": "a.example.com",
    }
}

_MIRRORS = {
    "public.ecr.aws": "111122223333.dkr.ecr.us-east-2.amazonaws.com/public",
    "nvcr.io": "111122223333.dkr.ecr.us-east-2.amazonaws.com/nvcr",
    "602401143452.dkr.ecr.us-west-2.amazonaws.com": "111122223333.dkr.ecr.us-east-2.amazonaws.com/eks",
}
_MIRRORED = {
    "platform.imageMirrors": _MIRRORS,
    "platform.controlPlane.private": True,
    "platform.dependencies": {"oci": "oci://111122223333.dkr.ecr.us-east-2.amazonaws.com/charts/HyperPodHelmChart", "ociVersion": "0.1.0"},
}
"""What a closed network needs."""

SAMPLES: dict[str, Sample] = {
    "aws.region": Sample("us-west-2", beside={"platform.network.zone": "us-west-2a"}),
    "aws.profile": Sample("other"),
    "aws.assumeRole.roleArn": Sample("arn:aws:iam::111122223333:role/other", around=_ASSUME),
    "aws.assumeRole.sessionName": Sample("deploy", around=_ASSUME),
    "aws.assumeRole.externalId": Sample("abc", around=_ASSUME),
    "aws.assumeRole.duration": Sample("2h", around=_ASSUME),
    "aws.assumeRole.tags": Sample({"team": "x"}, around=_ASSUME),
    "aws.assumeRole.transitiveTagKeys": Sample(["team"], around={"aws.assumeRole": {"roleArn": ROLE, "tags": {"team": "x"}}}),
    "aws.defaultTags": Sample({"cost": "x"}),
    "aws.extra": Sample({"maxRetries": 30}),
    "platform.name": Sample("other"),
    # The subnets and security groups of a VPC go with it, and the GPU subnets with their zone: the program refuses anything else.
    "platform.existing.network.vpcId": Sample(
        "vpc-0b",
        beside={
            "platform.existing.network.gpuSubnetIds": ["subnet-1a"],
            "platform.existing.network.controlPlaneSubnetIds": ["subnet-1b", "subnet-1c"],
            "platform.existing.network.nodeSecurityGroupIds": ["sg-1a", "sg-1b"],
        },
    ),
    "platform.existing.network.zone": Sample("us-east-2b", beside={"platform.existing.network.gpuSubnetIds": ["subnet-0f"]}),
    "platform.existing.network.gpuSubnetIds": Sample(["subnet-0d"]),
    "platform.existing.network.controlPlaneSubnetIds": Sample(["subnet-0b", "subnet-0e"]),
    "platform.existing.network.nodeSecurityGroupIds": Sample(["sg-0a", "sg-0d"]),
    "platform.existing.controlPlane.name": Sample("other-eks"),
    "platform.existing.controlPlane.values.version": Sample("1.34", around=_VALUES),
    "platform.existing.controlPlane.values.endpoint": Sample("https://F123456789ABCDEF.gr7.us-east-2.eks.amazonaws.com", around=_VALUES),
    "platform.existing.controlPlane.values.certificateAuthority": Sample("LS0tLS1CRUdJTh==", around=_VALUES),
    "platform.existing.controlPlane.values.oidcIssuer": Sample("oidc.eks.us-east-2.amazonaws.com/id/F123456789ABCDEF", around=_VALUES),
    "platform.existing.controlPlane.values.clusterSecurityGroupId": Sample("sg-0d", around=_VALUES),
    "platform.existing.controlPlane.values.vpcId": Sample("vpc-0b", around=_VALUES),
    "platform.existing.cluster.arn": Sample("arn:aws:sagemaker:us-east-2:123456789012:cluster/bbcdefghij12"),
    "platform.existing.cluster.name": Sample("other"),
    "platform.existing.addons": Sample(["coredns", "cert-manager", "aws-mountpoint-s3-csi-driver", "aws-fsx-csi-driver"]),
    "platform.existing.selfManagedAddons": Sample(["metrics-server"]),
    "platform.existing.operator.addonVersion": Sample("v1.4.0-eksbuild.1", old="v1.3.0-eksbuild.1"),
    "platform.network.zone": Sample("us-east-2b"),
    "platform.network.controlPlaneZones": Sample(["us-east-2a", "us-east-2b", "us-east-2c"]),
    "platform.network.cidr": Sample("10.64.0.0/16"),
    "platform.network.gpuCidr": Sample("10.0.128.0/18"),
    "platform.network.routeTableId": Sample("rtb-0b", base="eks"),
    "platform.network.egress": Sample("endpoints", around=_MIRRORED),
    "platform.existing.network.closed": Sample(around=_MIRRORED),
    "operator.closedNetwork": Sample(around={"operator.imageMirrors": _MIRRORS}),
    "platform.controlPlane.private": Sample(beside={"platform.controlPlane.publicAccessCidrs": ...}),
    "platform.controlPlane.deployerAccess": Sample(
        around={"platform.controlPlane.access": {"ci": {"principalArn": "arn:aws:iam::111122223333:role/ci", "policy": "clusterAdmin"}}}
    ),
    "platform.network.interfaceEndpoints": Sample(["sqs"], around={**_MIRRORED, "platform.network.egress": "endpoints"}),
    "platform.network.flowLogs.traffic": Sample("REJECT", around={"platform.network.flowLogs": {}}),
    "platform.network.flowLogs.retentionDays": Sample(30, around={"platform.network.flowLogs": {}}),
    "platform.controlPlane.name": Sample("other"),
    "platform.controlPlane.version": Sample("1.34"),
    "platform.controlPlane.publicAccessCidrs": Sample(["203.0.113.0/25"]),
    "platform.controlPlane.access.*.principalArn": Sample("arn:aws:iam::111122223333:role/other", around=_ACCESS),
    "platform.controlPlane.access.*.policy": Sample("clusterAdmin", around=_ACCESS),
    "platform.controlPlane.access.*.namespaces": Sample(["default"], around=_ACCESS),
    "platform.controlPlane.secretsKeyArn": Sample(KEY),
    "platform.controlPlane.logs": Sample(["api"]),
    "platform.controlPlane.logRetentionDays": Sample(30),
    "platform.controlPlane.addonVersions": Sample({"vpc-cni": "v1.20.5-eksbuild.1"}),
    "platform.dependencies.revision": Sample("c5275ddbbca58164d1f5bd3a2811e0fc952f7ff4"),
    "platform.dependencies.oci": Sample("oci://example.com/charts/HyperPodHelmChart", beside={"platform.dependencies.ociVersion": "0.1.0"}),
    "platform.dependencies.ociVersion": Sample(
        "0.2.0", around={"platform.dependencies": {"oci": "oci://example.com/charts/HyperPodHelmChart", "ociVersion": "0.1.0"}}
    ),
    "platform.dependencies.values": Sample({"health-monitoring-agent": {"x": 1}}),
    "platform.instanceGroups.*.instanceType": Sample("ml.p5en.48xlarge", around={"endpoints": {}}),
    "platform.instanceGroups.*.minCount": Sample(1),
    "platform.instanceGroups.*.zone": Sample("us-east-2a"),
    "platform.instanceGroups.*.deepHealthChecks": Sample(["InstanceStress"]),
    "platform.instanceGroups.*.volumeKeyArn": Sample(KEY),
    "platform.instanceGroups.*.trainingPlanArn": Sample("arn:aws:sagemaker:us-east-2:111122223333:training-plan/plan"),
    "platform.instanceGroups.*.threadsPerCore": Sample(1),
    "platform.instanceGroups.*.labels": Sample({"team": "x"}),
    "platform.instanceGroups.*.taints[].key": Sample("group", around=_TAINT),
    "platform.instanceGroups.*.taints[].value": Sample("b", around=_TAINT),
    "platform.instanceGroups.*.taints[].effect": Sample("NoExecute", around=_TAINT),
    "platform.instanceGroups.*.imageReleaseVersion": Sample("1.2.3"),
    "platform.cluster.name": Sample("other"),
    "platform.cluster.tieredStorage.memoryPercent": Sample(30, around={"platform.cluster.tieredStorage": {}}),
    "platform.addons.corednsVersion": Sample("v1.12.5-eksbuild.1"),
    "platform.addons.certManagerVersion": Sample("v1.18.3-eksbuild.1"),
    "platform.addons.s3CsiVersion": Sample("v1.15.0-eksbuild.1"),
    "platform.addons.fsxCsiVersion": Sample("v1.6.1-eksbuild.1"),
    "platform.addons.metricsServerVersion": Sample("v0.7.3-eksbuild.1"),
    "platform.operator.addonVersion": Sample("v1.4.0-eksbuild.1", old="v1.3.0-eksbuild.1"),
    "platform.operator.tlsBucket": Sample("hyperpod-tls-other"),
    "platform.operator.gatedModelRoleArn": Sample("arn:aws:iam::111122223333:role/gated"),
    "platform.operator.certificateArns": Sample(["arn:aws:acm:us-east-2:111122223333:certificate/12345678-1234-1234-1234-123456789012"]),
    "platform.operator.hostedZoneIds": Sample(["Z0123456789ABC"]),
    "platform.operator.dataCaptureBuckets": Sample(["captures"]),
    "platform.operator.dataCaptureKeyArns": Sample([KEY]),
    "platform.operator.configuration": Sample({"nodeSelector": {"team": "x"}}),
    "platform.modelBuckets": Sample(["my-models", "more-models"]),
    "platform.modelStore.bucket": Sample("hyperpod-other", around=_STORE),
    "platform.modelStore.models.*.modelId": Sample("meta-llama/Llama-3.1-70B-Instruct", around=_STORE),
    "platform.modelStore.models.*.revision": Sample(REVISION, around=_STORE),
    "platform.modelStore.models.*.prefix": Sample("other", around=_STORE),
    "platform.modelStore.models.*.include": Sample(["*"], around=_STORE),
    "platform.modelStore.models.*.token.secretName": Sample(
        "other", around={"platform.modelStore": {"models": {"llama": {**MODEL, "token": {"secretName": "hf", "key": "token"}}}}}
    ),
    "platform.modelStore.models.*.token.key": Sample(
        "other", around={"platform.modelStore": {"models": {"llama": {**MODEL, "token": {"secretName": "hf", "key": "token"}}}}}
    ),
    "platform.modelStore.models.*.token.configKey": Sample(
        "dpd-infra:other", around={"platform.modelStore": {"models": {"llama": {**MODEL, "token": {"configKey": "dpd-infra:one"}}}}}
    ),
    "platform.modelStore.namespace": Sample("kube-public", around=_STORE),
    "platform.modelStore.image": Sample("public.ecr.aws/docker/library/python:3.13-slim", around=_STORE),
    "platform.modelStore.packages": Sample(["huggingface_hub==0.34.5", "boto3==1.40.0"], around=_STORE),
    "platform.modelStore.cpu": Sample("8", around=_STORE),
    "platform.modelStore.memory": Sample("32Gi", around=_STORE),
    "platform.modelStore.disk": Sample("80Gi", around=_STORE),
    "platform.modelStore.timeoutMinutes": Sample(around=_STORE),
    "platform.modelStore.protect": Sample(around=_STORE),
    "platform.imageMirrors": Sample({"public.ecr.aws": "111122223333.dkr.ecr.us-east-2.amazonaws.com/public"}),
    "platform.teams.*.namespace": Sample("other", around=_TEAM),
    "platform.teams.*.existingNamespace": Sample(around=_TEAM),
    "platform.teams.*.labels": Sample({"team": "x"}, around=_TEAM),
    "platform.teams.*.quota.gpus": Sample(16, around=_TEAM),
    "platform.teams.*.quota.cpu": Sample("100", around=_TEAM),
    "platform.teams.*.quota.memory": Sample("100Gi", around=_TEAM),
    "platform.teams.*.quota.pods": Sample(10, around=_TEAM),
    "platform.teams.*.quota.endpoints": Sample(3, around=_TEAM),
    "platform.teams.*.quota.hard": Sample({"count/secrets": "10"}, around=_TEAM),
    "platform.teams.*.members.*.right": Sample("view", around=_TEAM),
    "platform.teams.*.members.*.group": Sample("others", around={"platform.teams": {"research": {"members": {"ann": {"group": "some"}}}}}),
    "platform.teams.*.members.*.user": Sample("bob", around=_TEAM),
    "platform.teams.*.members.*.principalArn": Sample(
        "arn:aws:iam::111122223333:role/b",
        around={"platform.teams": {"research": {"members": {"ann": {"principalArn": "arn:aws:iam::111122223333:role/a"}}}}},
    ),
    "platform.teams.*.invoke.endpoints": Sample(["llama", "other"], around=_INVOKE),
    "platform.teams.*.invoke.roles": Sample(["app", "batch"], around=_INVOKE),
    "platform.tags": Sample({"team": "x"}),
    "operator.addonVersion": Sample("v1.4.0-eksbuild.1", old="v1.3.0-eksbuild.1"),
    "operator.imageMirrors": Sample({"public.ecr.aws": "111122223333.dkr.ecr.us-east-2.amazonaws.com/public"}),
    "endpoints.*.model.name": _endpoint("Llama-3.1-70B-Instruct"),
    "endpoints.*.model.version": _endpoint("2"),
    "endpoints.*.model.location": _endpoint("other", model=_FSX),
    "endpoints.*.model.s3.bucket": _endpoint("more-models"),
    "endpoints.*.model.s3.prefix": _endpoint("Llama-3.1-70B-Instruct"),
    "endpoints.*.model.s3.region": _endpoint("us-west-2"),
    "endpoints.*.model.fsx.fileSystemId": _endpoint("fs-1123456789abcdef0", model=_FSX),
    "endpoints.*.model.fsx.dnsName": _endpoint("fs-0123456789abcdef0.fsx.us-east-2.amazonaws.com", model=_FSX),
    "endpoints.*.model.fsx.mountName": _endpoint("abcdefgh", model=_FSX),
    "endpoints.*.model.huggingFace.modelId": _endpoint("meta-llama/Llama-3.1-70B-Instruct", model=_HUGGING_FACE),
    "endpoints.*.model.huggingFace.revision": _endpoint(REVISION, model=_HUGGING_FACE),
    "endpoints.*.model.huggingFace.token.secretName": _endpoint("other", model=_HUGGING_FACE),
    "endpoints.*.model.huggingFace.token.key": _endpoint("other", model=_HUGGING_FACE),
    "endpoints.*.model.huggingFace.token.configKey": _endpoint(
        "dpd-infra:other", model={"name": "Llama", "huggingFace": {**MODEL, "token": {"configKey": "dpd-infra:one"}}}
    ),
    "endpoints.*.model.kubernetesVolume.volume": _endpoint({"persistentVolumeClaim": {"claimName": "two"}}, model=_VOLUME),
    "endpoints.*.instanceType": _endpoint("ml.p5en.48xlarge"),
    "endpoints.*.instanceTypes": _endpoint(["ml.p5en.48xlarge", "ml.p5.48xlarge"], instanceType=..., instanceTypes=["ml.p5.48xlarge"]),
    "endpoints.*.nodeAffinity": _endpoint(
        {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [
                    {"matchExpressions": [{"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["ml.p5en.48xlarge"]}]}
                ]
            }
        },
        instanceType=...,
        nodeAffinity={
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [
                    {"matchExpressions": [{"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["ml.p5.48xlarge"]}]}
                ]
            }
        },
    ),
    "endpoints.*.namespace": _endpoint("models"),
    "endpoints.*.endpointName": _endpoint("other"),
    "endpoints.*.prefill.maxNumSeqs": _endpoint(32),
    "endpoints.*.prefill.instanceGroup": _endpoint("gpu"),
    "endpoints.*.prefill.nodeSelector": _endpoint({"team": "x"}),
    "endpoints.*.prefill.args": _endpoint(["--enable-chunked-prefill"]),
    "endpoints.*.prefill.gpus": Sample(4, beside={"endpoints.llama.decode.gpus": 4}),
    "endpoints.*.prefill.resources.requests": _endpoint({"cpu": "90"}),
    "endpoints.*.prefill.resources.limits": _endpoint({"cpu": "90"}),
    "endpoints.*.prefill.autoscaling": _endpoint(AUTOSCALING),
    "endpoints.*.decode.maxNumSeqs": _endpoint(32),
    "endpoints.*.decode.instanceGroup": _endpoint("gpu"),
    "endpoints.*.decode.nodeSelector": _endpoint({"team": "x"}),
    "endpoints.*.decode.args": _endpoint(["--enable-chunked-prefill"]),
    "endpoints.*.decode.gpus": Sample(4, beside={"endpoints.llama.prefill.gpus": 4}),
    "endpoints.*.decode.resources.requests": _endpoint({"cpu": "90"}),
    "endpoints.*.decode.resources.limits": _endpoint({"cpu": "90"}),
    "endpoints.*.decode.autoscaling": _endpoint(AUTOSCALING),
    "endpoints.*.colocated.replicas": _endpoint(3, disaggregated=False),
    "endpoints.*.colocated.gpus": _endpoint(4, disaggregated=False),
    "endpoints.*.colocated.args": _endpoint(["--enable-chunked-prefill"], disaggregated=False),
    "endpoints.*.colocated.autoscaling": _endpoint(AUTOSCALING, disaggregated=False),
    **{
        f"endpoints.*.load.{key}": _endpoint(value, load=LOAD)
        for key, value in (
            ("requestsPerSecond", 2.0),
            ("inputTokens.mean", 5000.0),
            ("inputTokens.variation", 0.5),
            ("outputTokens.mean", 300.0),
            ("outputTokens.variation", 0.5),
            ("arrivals", None),
            ("sharedPrefixTokens", 100),
            ("streaming", None),
            ("offline", None),
            ("ttftFirst", None),
        )
    },
    "endpoints.*.load.concurrency": _endpoint(20, load={**{k: v for k, v in LOAD.items() if k != "requestsPerSecond"}, "concurrency": 10}),
    "endpoints.*.load.inputTokens.percentiles": _endpoint(
        {"p50": 5000.0, "p99": 9000.0}, load={**LOAD, "inputTokens": {"percentiles": {"p50": 4000.0, "p99": 9000.0}}}
    ),
    "endpoints.*.load.outputTokens.percentiles": _endpoint(
        {"p50": 300.0, "p99": 900.0}, load={**LOAD, "outputTokens": {"percentiles": {"p50": 200.0, "p99": 900.0}}}
    ),
    "endpoints.*.routing.autoscaling": _endpoint({"minReplicaCount": 1, "maxReplicaCount": 2}),
    "endpoints.*.worker.image": _endpoint("lmcache/vllm-openai:v0.4.3"),
    "endpoints.*.worker.portName": _endpoint("grpc"),
    "endpoints.*.worker.tensorParallelSize": Sample(
        4,
        around={"endpoints.llama.worker.tensorParallelSize": 8},
        beside={"endpoints.llama.prefill.gpus": 4, "endpoints.llama.decode.gpus": 4},
    ),
    "endpoints.*.worker.imageHolds": _endpoint(["efa"], worker__image="example.com/vllm:1"),
    "endpoints.*.worker.gpuMemoryUtilization": _endpoint(0.7),
    "endpoints.*.worker.args": _endpoint(["--enable-chunked-prefill"]),
    "endpoints.*.worker.command": _endpoint(["vllm", "serve"]),
    "endpoints.*.worker.workingDir": _endpoint("/tmp"),  # noqa: S108 - a directory of a container
    "endpoints.*.worker.environment": _endpoint({"TEAM": "x"}),
    "endpoints.*.worker.resources.requests": _endpoint({"cpu": "90"}),
    "endpoints.*.worker.resources.limits": _endpoint({"cpu": "90"}),
    "endpoints.*.worker.probes": _endpoint({"readinessProbe": {"httpGet": {"path": "/health", "port": 8000}}}),
    "endpoints.*.worker.requestLimits": _endpoint({"maxConcurrentRequests": 10}),
    "endpoints.*.worker.volumeName": _endpoint("weights"),
    "endpoints.*.worker.mountPath": _endpoint("/opt/ml/weights"),
    "endpoints.*.cache.l2.backend": _endpoint("tieredstorage", cache={"l2": {"backend": "redis", "url": "redis://a:6379"}}),
    "endpoints.*.cache.l2.url": _endpoint("redis://b:6379", cache={"l2": {"backend": "redis", "url": "redis://a:6379"}}),
    "endpoints.*.cache.configFile": _endpoint("/config/cache.yaml"),
    "endpoints.*.cache.pdBufferBytes": _endpoint(16 * 1024**3),
    "endpoints.*.placement.zone": _endpoint("us-east-2a"),
    "endpoints.*.placement.placementGroup": _endpoint("mine"),
    "endpoints.*.invocationEndpoint": _endpoint("v1/completions"),
    "endpoints.*.loadBalancer.healthCheckPath": _endpoint("/ping"),
    "endpoints.*.loadBalancer.algorithm": _endpoint("round_robin"),
    "endpoints.*.loadBalancer.idleTimeoutSeconds": _endpoint(120),
    "endpoints.*.tls.certificateArn": _endpoint(
        "arn:aws:acm:us-east-2:111122223333:certificate/22345678-1234-1234-1234-123456789012", **_TLS
    ),
    "endpoints.*.tls.domainName": _endpoint("b.example.com", **_TLS),
    "endpoints.*.tls.outputS3Uri": _endpoint("s3://hyperpod-tls-other/x"),
    "endpoints.*.dns.hostedZoneId": _endpoint("Z2222222222", dns={"hostedZoneId": "Z1111111111"}, **_TLS),
    "endpoints.*.dataCapture": _endpoint({"loadBalancer": {"enabled": True}}),
    "endpoints.*.metrics.scrapeIntervalSeconds": _endpoint(30),
    "endpoints.*.metrics.path": _endpoint("/other"),
    "endpoints.*.metrics.port": _endpoint(8000),
    "endpoints.*.serviceAccount": _endpoint("other"),
    "endpoints.*.kueue.queueName": _endpoint("other", kueue={"queueName": "one"}),
    "endpoints.*.kueue.priorityClass": _endpoint("other", kueue={"queueName": "one"}),
    "endpoints.*.tags": _endpoint({"team": "x"}),
    "endpoints.*.labels": _endpoint({"team": "x"}),
    "endpoints.*.annotations": _endpoint({"team": "x"}),
    "endpoints.*.change.mode": _endpoint("recreate"),
    "endpoints.*.change.generation": _endpoint(2, change={"mode": "blueGreen"}),
    "endpoints.*.change.recreations": _endpoint(1, change={"mode": "recreate"}),
    "endpoints.*.overrides": _endpoint({"spec": {"modelVersion": "2"}}),
    "endpoints.*.silence[].rule": _endpoint("DPD023", silence=[{"rule": "DPD022", "reason": "seen"}]),
    "endpoints.*.silence[].reason": _endpoint("seen to work", silence=[{"rule": "DPD022", "reason": "seen"}]),
}


def base_of(path: str) -> str:
    """The stack that a field's sample changes, where the sample does not say."""
    if path.startswith("platform.existing.network."):
        return "network"
    if path.startswith("platform.existing.controlPlane."):
        return "eks"
    if path.startswith("platform.existing."):
        return "existing"
    return "endpoints" if path.startswith(("operator.", "endpoints.")) else "own"


def sample_at(path: str) -> Sample:
    """The field's sample; the groups of an existing cluster have those of the platform's own."""
    own, of_existing = "platform.instanceGroups.", "platform.existing.cluster.instanceGroups."
    if not path.startswith(of_existing):
        return SAMPLES.get(path, Sample())
    sample = SAMPLES.get(path.replace(of_existing, own), Sample())
    return replace(sample, around={place.replace(own, of_existing): value for place, value in sample.around.items()})


def placed(path: str) -> list[str | int]:
    """A field's place in the configuration: the entries' names in place of `*`, the first of a list for `[]`."""
    steps: list[str | int] = []
    parts = path.split(".")
    for index, part in enumerate(parts):
        name = NAMES.get(".".join(parts[: index + 1]), part) if part == "*" else part
        steps += [name.removesuffix("[]"), 0] if name.endswith("[]") else [name]
    return steps


def put(config: dict[str, Any], steps: list[str | int], value: Any) -> None:
    """Put a value in its place; `...` takes out what stands there."""
    first, *rest = steps
    if first == "aws":
        if rest[:1] == ["extra"]:
            config |= {f"aws:{key}": part for key, part in value.items()}
            return
        if rest[:1] == ["assumeRole"]:
            # Pulumi's key holds a list of roles; one is allowed here.
            place: Any = config.setdefault("aws:assumeRoles", [{}])
            if len(rest) == 1:
                config["aws:assumeRoles"] = [copy.deepcopy(value)]
            else:
                place[0][rest[1]] = value
            return
        if rest == ["defaultTags"]:
            value = {"tags": value}
        config[f"aws:{rest[0]}"] = value
        return
    target: Any = config
    for step in [f"dpd-infra:{first}", *rest[:-1]]:
        target = target[step] if isinstance(target, list) else target.setdefault(step, {})
    last = rest[-1] if rest else None
    if last is None:
        config[f"dpd-infra:{first}"] = copy.deepcopy(value)
    elif value is ...:
        target.pop(last, None)
    else:
        target[last] = copy.deepcopy(value)
