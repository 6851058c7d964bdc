"""No rule ends in an exception, whatever stands in a manifest: wrong types, missing parts, absurd numbers, strange texts."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from dpd_infra.rules.check import judged
from dpd_infra.rules.registry import all_rules
from dpd_infra.rules.subject import EndpointSubject
from tests.pure.endpoint.test_published_example import PUBLISHED
from tests.pure.rules.kit import raw_stack, raw_subject

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(min_value=-(10**30), max_value=10**30),
    st.floats(),
    st.text(max_size=12),
    st.sampled_from(
        ["8", "1e99", "99999999999999999999Gi", "-1", "0", "auto", "$(X)", "--", "-", "=", "hf_aaaaaaaaaaaa", "ml.p5.48xlarge"]
    ),
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3), max_leaves=6
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path]
    if isinstance(value, dict):
        found += [place for key, part in value.items() for place in places(part, (*path, key))]
    elif isinstance(value, list):
        found += [place for index, part in enumerate(value) for place in places(part, (*path, index))]
    return found


WHOLE: dict[str, Any] = json.loads(json.dumps(PUBLISHED))
WHOLE["metadata"] |= {"labels": {"kueue.x-k8s.io/queue-name": "q"}, "annotations": {"kueue.x-k8s.io/queue-name": "q"}}
WHOLE["spec"] |= {
    "instanceTypes": ["ml.p5.48xlarge"],
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [
                {"matchExpressions": [{"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["ml.p5.48xlarge"]}]}
            ]
        }
    },
    "replicas": 1,
    "InitialReplicaCount": 1,
    "inferenceGateway": {"enabled": True},
    "maxDeployTimeInSeconds": 60,
    "dnsConfig": {"hostedZoneId": "Z1"},
    "tlsConfig": {"customCertificateConfig": {"acmArn": "arn:aws:acm:us-east-2:111122223333:certificate/1", "domainName": "a.b"}},
    "dataCapture": {"sagemakerEndpoint": {"enabled": True}, "modelPod": {"enabled": True}},
    "kubernetes": {
        "volumes": [{"name": "shm", "hostPath": {"path": "/dev/infiniband"}}],
        "initContainers": [{"env": [{"name": "K", "value": "v"}]}],
    },
    "autoScalingSpec": {"cloudWatchTriggerList": [{"dimensions": [{"name": "EndpointName", "value": "x"}]}], "minReplicaCount": 9},
}
WHOLE["spec"]["kvCacheSpec"] |= {"enableL2Cache": True, "l2CacheSpec": {"l2CacheBackend": "redis", "l2CacheLocalUrl": "redis://a:b@c"}}
WHOLE["spec"]["metrics"]["modelMetrics"] = {"port": 8080, "path": "/metrics"}
WHOLE["spec"]["pdSpec"] |= {
    "topologySpec": {"sameAZ": False, "availabilityZone": "us-east-2a", "placementGroup": "g"},
    "autoScalingSpec": {"prefillAutoScaling": {"prometheusTrigger": {"query": "vllm_x"}}, "decodingAutoScaling": {"maxReplicaCount": 3}},
}
WHOLE["spec"]["pdSpec"]["prefillSpec"] |= {"args": ["-tp", "4"], "nodeSelector": {"sagemaker.amazonaws.com/x": "y"}}
WHOLE["spec"]["worker"]["probes"] = {"livenessProbe": {"httpGet": {"path": "/x", "port": 1}, "periodSeconds": 1}}
WHOLE["spec"]["worker"]["environmentVariables"] += [
    {"name": name, "value": "0.5"}
    for name in ("LMCACHE_CHUNK_SIZE", "LMCACHE_MAX_LOCAL_CPU_SIZE", "NIXL_BACKEND", "PYTORCH_CUDA_ALLOC_CONF")
]
PLACES = places(WHOLE)


def with_value(path: tuple[Any, ...], value: Any, *, taken: bool) -> Any:
    document = json.loads(json.dumps(WHOLE))
    if not path:
        return value
    place = document
    for step in path[:-1]:
        place = place[step]
    if taken:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return document


@settings(max_examples=400)
@given(path=st.sampled_from(PLACES), value=VALUES, taken=st.booleans())
@example(path=("spec", "worker", "args"), value=["--max-num-seqs", "999999999999T", "--max-model-len", "999999999999T"], taken=False)
@example(path=("spec", "pdSpec", "prefillSpec", "replicas"), value=10**400, taken=False)
def test_no_rule_ends_in_an_exception(path: tuple[Any, ...], value: Any, taken: bool) -> None:
    document = with_value(path, value, taken=taken)
    subject = raw_subject(document if isinstance(document, dict) else {"spec": document})
    # Each by itself, past what the schema withholds: a rule is to hold its own.
    for rule in all_rules():
        if rule.scope is EndpointSubject:
            list(rule.check(subject))


@settings(max_examples=50)
@given(st.sampled_from(PLACES[1:]), VALUES)
def test_a_check_of_the_whole_ends_too(path: tuple[Any, ...], value: Any) -> None:
    stack = raw_stack(with_value(path, value, taken=False))
    judged(stack)
