"""DPD500 to DPD539: network, control plane, groups, add-ons, operator."""

from __future__ import annotations

from tests.pure.rules.kit import Case, drop, platform, put, stack

TAINT = {"key": "team", "value": "x", "effect": "NoSchedule"}
SYSTEM = "instanceGroups|system"
GPU = "instanceGroups|gpu"
PLAN = "arn:aws:sagemaker:us-east-1:111122223333:training-plan/plan"
KEY = "arn:aws:kms:us-east-2:111122223333:key/12345678"

CASES = (
    Case(
        "DPD501",
        stack(drop("dpd-infra:platform|controlPlane|publicAccessCidrs")),
        stack(drop("dpd-infra:platform|controlPlane|publicAccessCidrs"), platform("controlPlane|private", True)),
    ),
    Case("DPD502", stack(platform("controlPlane|version", "1.36")), stack(platform("controlPlane|version", "1.32"))),
    Case(
        "DPD503",
        stack(platform("network|controlPlaneZones", ["us-east-2a", "us-east-1b"])),
        stack(platform("network|controlPlaneZones", ["us-east-2a", "us-east-2b"])),
    ),
    Case("DPD504", stack(platform("network|gpuCidr", "10.1.0.0/25")), stack(platform("network|gpuCidr", "10.1.0.0/22"))),
    Case("DPD505", stack(platform("network|gpuCidr", "10.1.0.0/23")), stack(platform("network|gpuCidr", "10.1.0.0/21"))),
    Case("DPD506", stack(platform("network|gpuCidr", "10.0.0.0/17")), stack(platform("network|gpuCidr", "10.0.128.0/17"))),
    Case(
        "DPD507",
        stack(platform("controlPlane|deployerAccess", False)),
        stack(
            platform("controlPlane|deployerAccess", False),
            platform("controlPlane|access", {"ci": {"principalArn": "arn:aws:iam::111122223333:role/ci", "policy": "clusterAdmin"}}),
        ),
    ),
    Case(
        "DPD508",
        stack(platform("controlPlane|publicAccessCidrs", ["0.0.0.0/0"])),
        stack(platform("controlPlane|publicAccessCidrs", ["0.0.0.0/1"])),
    ),
    Case("DPD509", stack(platform("controlPlane|logRetentionDays", 100)), stack(platform("controlPlane|logRetentionDays", 120))),
    Case(
        "DPD510",
        stack(platform("controlPlane|addonVersions", {"vpc-cni": "v1.18.2-eksbuild.9"})),
        stack(platform("controlPlane|addonVersions", {"vpc-cni": "v1.18.3-eksbuild.1"})),
    ),
    Case(
        "DPD511",
        stack(platform("network|controlPlaneZones", ["us-east-2b", "us-east-2c"])),
        stack(platform("network|controlPlaneZones", ["us-east-2a", "us-east-2c"])),
    ),
    Case(
        "DPD512",
        stack(put("aws:region", "ca-central-1"), platform("network|zone", "ca-central-1a")),
        stack(put("aws:region", "eu-west-1"), platform("network|zone", "eu-west-1a")),
    ),
    Case("DPD513", stack(put("aws:region", "eu-nort-1")), stack(put("aws:region", "eu-north-2"))),
    Case("DPD514", stack(put("aws:region", "eu-north-2")), stack(put("aws:region", "eu-north-1"))),
    Case("DPD515", stack(platform("network|cidr", "172.32.0.0/16")), stack(platform("network|cidr", "172.31.0.0/16"))),
    Case("DPD521", stack(platform(f"{GPU}|zone", "us-east-2b")), stack(platform(f"{GPU}|zone", "us-east-2a"))),
    Case("DPD522", stack(platform(f"{SYSTEM}|instanceType", "ml.x9.large")), stack(platform(f"{SYSTEM}|instanceType", "ml.m5.24xlarge"))),
    Case(
        "DPD523",
        stack(platform(f"{SYSTEM}|taints", [TAINT]), platform(f"{GPU}|taints", [TAINT])),
        stack(platform(f"{GPU}|taints", [TAINT])),
    ),
    Case("DPD524", stack(drop("dpd-infra:platform|instanceGroups|system")), stack()),
    Case("DPD525", stack(platform(f"{GPU}|taints", [TAINT])), stack(platform(f"{GPU}|taints", [{**TAINT, "effect": "PreferNoSchedule"}]))),
    Case(
        "DPD526",
        stack(platform(f"{GPU}|taints", [TAINT]), platform(f"{GPU}|deepHealthChecks", ["InstanceStress"])),
        stack(platform(f"{GPU}|taints", [TAINT]), platform(f"{GPU}|deepHealthChecks", [])),
    ),
    Case("DPD527", stack(platform(f"{GPU}|minCount", 4)), stack(platform(f"{GPU}|minCount", 3))),
    Case(
        "DPD528",
        stack(platform(f"{GPU}|capacity", "spot"), platform("cluster|continuousProvisioning", False)),
        stack(platform(f"{GPU}|capacity", "spot")),
    ),
    Case(
        "DPD529",
        stack(platform(f"{GPU}|trainingPlanArn", PLAN)),
        stack(platform(f"{GPU}|trainingPlanArn", PLAN.replace("us-east-1", "us-east-2"))),
    ),
    Case(
        "DPD530",
        stack(platform("addons|certManagerVersion", "v1.18.2-eksbuild.1")),
        stack(platform("addons|certManagerVersion", "v1.18.2-eksbuild.2")),
    ),
    Case("DPD531", stack(platform("operator|tlsBucket", "my-tls")), stack(platform("operator|tlsBucket", "hyperpod-tls-mine"))),
    Case("DPD532", stack(platform("tags", {"AWS:team": "x"})), stack(platform("tags", {"team:aws": "x"}))),
    # One interface: 14 pods on ml.m5.xlarge, 29 on ml.c5.4xlarge; 5 daemons a node and 7 pods of add-ons.
    Case(
        "DPD533",
        stack(platform(f"{SYSTEM}|instanceType", "ml.m5.xlarge"), platform(f"{SYSTEM}|count", 2), platform(f"{GPU}|taints", [TAINT])),
        stack(platform(f"{SYSTEM}|instanceType", "ml.m5.xlarge"), platform(f"{SYSTEM}|count", 3), platform(f"{GPU}|taints", [TAINT])),
    ),
    Case(
        "DPD534",
        stack(
            platform(f"{GPU}|instanceType", "ml.p6-b200.48xlarge"),
            platform("dependencies|values", {"aws-efa-k8s-device-plugin": {"image": {"tag": "v0.5.5"}}}),
        ),
        stack(
            platform(f"{GPU}|instanceType", "ml.p6-b200.48xlarge"),
            platform("dependencies|values", {"aws-efa-k8s-device-plugin": {"image": {"tag": "v0.5.6"}}}),
        ),
    ),
    Case(
        "DPD535",
        stack(platform("operator|configuration", {"alb": {"serviceAccount": {"roleArn": ""}}})),
        stack(platform("operator|configuration", {"alb": {"replicaCount": 2}})),
    ),
    Case("DPD538", stack(platform("operator|loadBalancerController", False)), stack(platform("operator|loadBalancerController", True))),
    Case(
        "DPD536",
        stack(platform("operator|configuration", {"hyperpodClusterArn": "arn:aws:sagemaker:us-east-2:1:cluster/x"})),
        stack(platform("operator|configuration", {"nodeSelector": {"team": "x"}})),
    ),
    Case(
        "DPD537",
        stack(platform(f"{GPU}|volumeKeyArn", KEY), platform("cluster|continuousProvisioning", False)),
        stack(platform(f"{GPU}|volumeKeyArn", KEY)),
    ),
)
