"""Access entries: one a principal, whatever the grants are called and whoever deploys."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dpd_infra.plan.access import RightPlan, plan_access
from dpd_infra.spec.control_plane import AccessGrant
from dpd_infra.spec.vocabulary import AccessPolicy

PRINCIPALS = [f"arn:aws:iam::111122223333:role/{name}" for name in ("a", "team/a", "b")]

grants = st.dictionaries(
    st.text("abc", min_size=1, max_size=3),
    st.tuples(
        st.sampled_from(PRINCIPALS), st.sampled_from(AccessPolicy), st.lists(st.sampled_from(["x", "y", "z"]), max_size=2).map(tuple)
    ).map(lambda drawn: AccessGrant(principal_arn=drawn[0], policy=drawn[1], namespaces=drawn[2])),
    max_size=5,
)


def test_the_policies_are_those_of_eks() -> None:
    arns = {policy: RightPlan(policy, ()).arn("aws-us-gov") for policy in AccessPolicy}
    assert arns == {
        AccessPolicy.CLUSTER_ADMIN: "arn:aws-us-gov:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy",
        AccessPolicy.ADMIN: "arn:aws-us-gov:eks::aws:cluster-access-policy/AmazonEKSAdminPolicy",
        AccessPolicy.EDIT: "arn:aws-us-gov:eks::aws:cluster-access-policy/AmazonEKSEditPolicy",
        AccessPolicy.VIEW: "arn:aws-us-gov:eks::aws:cluster-access-policy/AmazonEKSViewPolicy",
    }


@given(grants, st.sampled_from([None, *PRINCIPALS]))
def test_no_principal_gets_two_entries_and_none_is_forgotten(given_grants: dict[str, AccessGrant], deployer: str | None) -> None:
    entries = plan_access(given_grants, deployer)
    wanted = {grant.principal_arn for grant in given_grants.values()} | ({deployer} if deployer else set())
    assert [entry.principal_arn for entry in entries] == sorted(wanted)
    assert len({entry.name for entry in entries}) == len(entries)
    assert all(len({right.policy for right in entry.rights}) == len(entry.rights) for entry in entries)


@given(grants, st.sampled_from(PRINCIPALS))
def test_whoever_deploys_is_cluster_admin_everywhere(given_grants: dict[str, AccessGrant], deployer: str) -> None:
    entry = next(entry for entry in plan_access(given_grants, deployer) if entry.principal_arn == deployer)
    assert RightPlan(AccessPolicy.CLUSTER_ADMIN, ()) in entry.rights


@given(grants)
def test_every_right_that_was_granted_holds(given_grants: dict[str, AccessGrant]) -> None:
    entries = {entry.principal_arn: entry for entry in plan_access(given_grants, None)}
    for grant in given_grants.values():
        right = next(right for right in entries[grant.principal_arn].rights if right.policy is grant.policy)
        assert right.namespaces == () or (grant.namespaces and set(grant.namespaces) <= set(right.namespaces))


@given(grants)
def test_a_renamed_grant_changes_nothing(given_grants: dict[str, AccessGrant]) -> None:
    renamed = {f"renamed-{name}": grant for name, grant in reversed(given_grants.items())}
    assert plan_access(renamed, None) == plan_access(given_grants, None)
