"""The role of the AWS Load Balancer Controller: the upstream policy of v2.13.0, narrowed to one VPC, region and account."""

from __future__ import annotations

from typing import Final

from dpd_infra.catalog.sources import LOAD_BALANCER_CONTROLLER_POLICY
from dpd_infra.plan.iam.document import RolePlan, Scope, Statement, allow, inline
from dpd_infra.plan.iam.trust import LOAD_BALANCER_CONTROLLER, trust, web_identity

CLUSTER_TAG: Final = "elbv2.k8s.aws/cluster"
"""The tag that the controller puts on all it makes, and by which it knows its own."""

_REQUESTED = {f"aws:RequestTag/{CLUSTER_TAG}": "false"}
_NOT_REQUESTED = {f"aws:RequestTag/{CLUSTER_TAG}": "true"}
_OWNED = {f"aws:ResourceTag/{CLUSTER_TAG}": "false"}

_ADDED_BY_TAGS = ("elasticloadbalancing:AddTags", "elasticloadbalancing:RemoveTags")


def load_balancer_controller_role(
    *, region: str, account_id: str, vpc_id: str, provider_arn: str, issuer: str, partition: str = "aws"
) -> RolePlan:
    """The controller's role: every action of the upstream policy, with its tag conditions.

    What upstream allows on `*` is allowed on the resource types of the service authorization reference, in this region and account,
    and on security groups of this VPC. Only the actions that take no resource stay on `*`: the reads, shield:CreateProtection and
    elasticloadbalancing:SetWebAcl.
    """
    scope = Scope(partition, region, account_id)
    statements = [_reads(), *_reads_of_resources(scope), *_firewalls(scope)]
    statements += [*_security_groups(scope, vpc_id), *_load_balancers(scope), *_tags(scope), *_rules(scope)]
    return RolePlan(
        name_hint="load-balancer-controller",
        description="Role of the AWS Load Balancer Controller that the inference operator brings.",
        trust=trust(web_identity(provider_arn, issuer, [LOAD_BALANCER_CONTROLLER])),
        managed_policies=(),
        inline=inline(*statements),
        source=LOAD_BALANCER_CONTROLLER_POLICY,
    )


def _elb(scope: Scope, *kinds: str) -> list[str]:
    """ARNs of load balancer resources: application and network load balancers, their listeners and rules, or target groups."""
    tails = {"loadbalancer": "*/*", "listener": "*/*/*", "listener-rule": "*/*/*/*"}
    arns: list[str] = []
    for kind in kinds:
        resources = ["targetgroup/*/*"] if kind == "targetgroup" else [f"{kind}/{family}/{tails[kind]}" for family in ("app", "net")]
        arns += [scope.arn("elasticloadbalancing", resource) for resource in resources]
    return arns


def _reads() -> Statement:
    ec2 = (
        "AccountAttributes",
        "Addresses",
        "AvailabilityZones",
        "CoipPools",
        "Instances",
        "InternetGateways",
        "IpamPools",
        "NetworkInterfaces",
        "RouteTables",
        "SecurityGroups",
        "Subnets",
        "Tags",
        "VpcPeeringConnections",
        "Vpcs",
    )
    elb = (
        "CapacityReservation",
        "ListenerAttributes",
        "ListenerCertificates",
        "Listeners",
        "LoadBalancerAttributes",
        "LoadBalancers",
        "Rules",
        "SSLPolicies",
        "Tags",
        "TargetGroupAttributes",
        "TargetGroups",
        "TargetHealth",
        "TrustStores",
    )
    actions = [*(f"ec2:Describe{what}" for what in ec2), *(f"elasticloadbalancing:Describe{what}" for what in elb)]
    return allow("Read", [*actions, "acm:ListCertificates", "iam:ListServerCertificates", "shield:GetSubscriptionState"], "*")


def _reads_of_resources(scope: Scope) -> list[Statement]:
    role = "role/aws-service-role/elasticloadbalancing.amazonaws.com/AWSServiceRoleForElasticLoadBalancing"
    return [
        allow(
            "ServiceLinkedRole",
            ["iam:CreateServiceLinkedRole"],
            [scope.global_arn("iam", role)],
            {"StringEquals": {"iam:AWSServiceName": "elasticloadbalancing.amazonaws.com"}},
        ),
        allow("ReadAddressPools", ["ec2:GetCoipPoolUsage"], [scope.arn("ec2", "coip-pool/*")]),
        allow("ReadUserPools", ["cognito-idp:DescribeUserPoolClient"], [scope.arn("cognito-idp", "userpool/*")]),
        allow("ReadCertificates", ["acm:DescribeCertificate"], [scope.arn("acm", "certificate/*")]),
        allow("ReadServerCertificates", ["iam:GetServerCertificate"], [scope.global_arn("iam", "server-certificate/*")]),
    ]


def _firewalls(scope: Scope) -> list[Statement]:
    verbs = ("GetWebACL", "GetWebACLForResource", "AssociateWebACL", "DisassociateWebACL")
    balancers = scope.arn("elasticloadbalancing", "loadbalancer/app/*/*")
    lists = [scope.arn("waf-regional", "webacl/*"), scope.arn("wafv2", "regional/webacl/*/*")]
    protections = [scope.global_arn("shield", "protection/*")]
    return [
        allow("WebFirewalls", [f"{prefix}:{verb}" for prefix in ("waf-regional", "wafv2") for verb in verbs], [*lists, balancers]),
        allow("WithoutResource", ["elasticloadbalancing:SetWebAcl", "shield:CreateProtection"], "*"),
        allow("Protections", ["shield:DeleteProtection", "shield:DescribeProtection"], protections),
    ]


def _security_groups(scope: Scope, vpc_id: str) -> list[Statement]:
    groups, vpc = [scope.arn("ec2", "security-group/*")], scope.arn("ec2", f"vpc/{vpc_id}")
    in_vpc = {"ArnEquals": {"ec2:Vpc": vpc}}
    created = {"StringEquals": {"ec2:CreateAction": "CreateSecurityGroup"}, "Null": _REQUESTED}
    return [
        # Upstream leaves these two without a tag condition, because the controller also opens groups that it did not make: the nodes'.
        allow("Ingress", ["ec2:AuthorizeSecurityGroupIngress", "ec2:RevokeSecurityGroupIngress"], groups, in_vpc),
        allow("CreateGroups", ["ec2:CreateSecurityGroup"], [*groups, vpc]),
        allow("ReadGroupsOfVpc", ["ec2:GetSecurityGroupsForVpc"], [vpc]),
        allow("TagNewGroups", ["ec2:CreateTags"], groups, created),
        allow("TagGroups", ["ec2:CreateTags", "ec2:DeleteTags"], groups, {"Null": {**_NOT_REQUESTED, **_OWNED}}),
        allow("DeleteGroups", ["ec2:DeleteSecurityGroup"], groups, {"Null": _OWNED}),
    ]


def _load_balancers(scope: Scope) -> list[Statement]:
    prefix = "elasticloadbalancing:"
    of_balancer = (
        "DeleteLoadBalancer",
        "ModifyCapacityReservation",
        "ModifyIpPools",
        "ModifyLoadBalancerAttributes",
        "SetIpAddressType",
        "SetSecurityGroups",
        "SetSubnets",
    )
    of_group = ("DeleteTargetGroup", "ModifyTargetGroup", "ModifyTargetGroupAttributes")
    made = ["CreateLoadBalancer", "CreateTargetGroup"]
    return [
        allow("Create", [prefix + action for action in made], _elb(scope, "loadbalancer", "targetgroup"), {"Null": _REQUESTED}),
        allow(
            "ManageOwn",
            [prefix + action for action in (*of_balancer, *of_group, "ModifyListenerAttributes")],
            _elb(scope, "loadbalancer", "targetgroup", "listener"),
            {"Null": _OWNED},
        ),
        allow("Targets", [prefix + action for action in ("DeregisterTargets", "RegisterTargets")], _elb(scope, "targetgroup")),
    ]


def _tags(scope: Scope) -> list[Statement]:
    owners = _elb(scope, "loadbalancer", "targetgroup")
    created = {
        "StringEquals": {"elasticloadbalancing:CreateAction": ["CreateLoadBalancer", "CreateTargetGroup"]},
        "Null": _REQUESTED,
    }
    return [
        allow("TagNew", ["elasticloadbalancing:AddTags"], owners, created),
        allow("TagOwn", _ADDED_BY_TAGS, owners, {"Null": {**_NOT_REQUESTED, **_OWNED}}),
        allow("TagListeners", _ADDED_BY_TAGS, _elb(scope, "listener", "listener-rule")),
    ]


def _rules(scope: Scope) -> list[Statement]:
    actions = (
        "AddListenerCertificates",
        "CreateListener",
        "CreateRule",
        "DeleteListener",
        "DeleteRule",
        "ModifyListener",
        "ModifyRule",
        "RemoveListenerCertificates",
        "SetRulePriorities",
    )
    resources = _elb(scope, "loadbalancer", "listener", "listener-rule")
    return [allow("Rules", [f"elasticloadbalancing:{action}" for action in actions], resources)]
