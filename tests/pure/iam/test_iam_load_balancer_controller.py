"""The load balancer controller's policy against the upstream one, statement by statement."""

from __future__ import annotations

from typing import Any

from tests.pure.iam.iam_samples import VPC, listed, roles, statements

TAG = "elbv2.k8s.aws/cluster"
REQUESTED = {"Null": {f"aws:RequestTag/{TAG}": "false"}}
OWNED = {"Null": {f"aws:ResourceTag/{TAG}": "false"}}
RETAG = {"Null": {f"aws:RequestTag/{TAG}": "true", f"aws:ResourceTag/{TAG}": "false"}}
ELB = "elasticloadbalancing:"


def _ec2(names: str) -> list[str]:
    return [f"ec2:{name}" for name in names.split()]


def _elb(names: str) -> list[str]:
    return [f"{ELB}{name}" for name in names.split()]


# kubernetes-sigs/aws-load-balancer-controller, v2.13.0, docs/install/iam_policy.json: the actions and condition of each statement.
UPSTREAM: list[tuple[list[str], dict[str, Any]]] = [
    (["iam:CreateServiceLinkedRole"], {"StringEquals": {"iam:AWSServiceName": "elasticloadbalancing.amazonaws.com"}}),
    (
        _ec2(
            "DescribeAccountAttributes DescribeAddresses DescribeAvailabilityZones DescribeInternetGateways DescribeVpcs "
            "DescribeVpcPeeringConnections DescribeSubnets DescribeSecurityGroups DescribeInstances DescribeNetworkInterfaces "
            "DescribeTags GetCoipPoolUsage DescribeCoipPools GetSecurityGroupsForVpc DescribeIpamPools DescribeRouteTables"
        )
        + _elb(
            "DescribeLoadBalancers DescribeLoadBalancerAttributes DescribeListeners DescribeListenerCertificates DescribeSSLPolicies "
            "DescribeRules DescribeTargetGroups DescribeTargetGroupAttributes DescribeTargetHealth DescribeTags DescribeTrustStores "
            "DescribeListenerAttributes DescribeCapacityReservation"
        ),
        {},
    ),
    (
        [
            "cognito-idp:DescribeUserPoolClient",
            *("acm:ListCertificates", "acm:DescribeCertificate", "iam:ListServerCertificates", "iam:GetServerCertificate"),
            *(f"waf-regional:{verb}" for verb in ("GetWebACL", "GetWebACLForResource", "AssociateWebACL", "DisassociateWebACL")),
            *(f"wafv2:{verb}" for verb in ("GetWebACL", "GetWebACLForResource", "AssociateWebACL", "DisassociateWebACL")),
            *(f"shield:{verb}" for verb in ("GetSubscriptionState", "DescribeProtection", "CreateProtection", "DeleteProtection")),
        ],
        {},
    ),
    (_ec2("AuthorizeSecurityGroupIngress RevokeSecurityGroupIngress CreateSecurityGroup"), {}),
    (["ec2:CreateTags"], {"StringEquals": {"ec2:CreateAction": "CreateSecurityGroup"}, **REQUESTED}),
    (["ec2:CreateTags", "ec2:DeleteTags"], RETAG),
    (_ec2("AuthorizeSecurityGroupIngress RevokeSecurityGroupIngress DeleteSecurityGroup"), OWNED),
    (_elb("CreateLoadBalancer CreateTargetGroup"), REQUESTED),
    (_elb("CreateListener DeleteListener CreateRule DeleteRule"), {}),
    (_elb("AddTags RemoveTags"), RETAG),
    (_elb("AddTags RemoveTags"), {"resources": ("listener/", "listener-rule/")}),
    (
        _elb(
            "ModifyLoadBalancerAttributes SetIpAddressType SetSecurityGroups SetSubnets DeleteLoadBalancer ModifyTargetGroup "
            "ModifyTargetGroupAttributes DeleteTargetGroup ModifyListenerAttributes ModifyCapacityReservation ModifyIpPools"
        ),
        OWNED,
    ),
    (_elb("AddTags"), {"StringEquals": {f"{ELB}CreateAction": ["CreateTargetGroup", "CreateLoadBalancer"]}, **REQUESTED}),
    (_elb("RegisterTargets DeregisterTargets"), {}),
    (
        _elb("SetWebAcl ModifyListener AddListenerCertificates RemoveListenerCertificates ModifyRule SetRulePriorities"),
        {},
    ),
]


def _flat(condition: dict[str, Any]) -> set[tuple[str, str, str]]:
    return {(operator, key, value) for operator, keys in condition.items() for key, values in keys.items() for value in listed(values)}


def test_the_actions_are_the_upstream_ones_and_no_others() -> None:
    ours = {action for statement in statements(roles()["load balancers"]) for action in listed(statement["Action"])}
    assert ours == {action for actions, _ in UPSTREAM for action in actions}


def test_no_condition_of_the_upstream_policy_is_lost() -> None:
    for statement in statements(roles()["load balancers"]):
        ours = _flat(statement.get("Condition", {}))
        kinds = {arn.split(":", 5)[-1].split("/")[0] + "/" for arn in listed(statement["Resource"])}
        for action in listed(statement["Action"]):
            allowed = [condition for actions, condition in UPSTREAM if action in actions]
            assert any(
                kinds <= set(condition["resources"]) if "resources" in condition else _flat(condition) <= ours for condition in allowed
            ), (statement["Sid"], action)


def test_every_way_in_which_upstream_allows_an_action_is_still_open() -> None:
    ours = statements(roles()["load balancers"])
    for actions, condition in UPSTREAM:
        wanted = set() if "resources" in condition else _flat(condition)
        for action in actions:
            conditions = [_flat(s.get("Condition", {})) for s in ours if action in listed(s["Action"])]
            # A wider statement of ours serves as well; the one key added to upstream's is the VPC of the security groups.
            assert any({entry for entry in theirs if entry[1] != "ec2:Vpc"} <= wanted for theirs in conditions), action


def test_ingress_rules_of_security_groups_change_in_the_platforms_vpc_only() -> None:
    ingress = [s for s in statements(roles()["load balancers"]) if "ec2:AuthorizeSecurityGroupIngress" in listed(s["Action"])]
    assert [s["Condition"]["ArnEquals"]["ec2:Vpc"].rsplit("/")[-1] for s in ingress] == [VPC]
