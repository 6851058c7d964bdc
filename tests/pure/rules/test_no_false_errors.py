"""Manifests written after the public documents are taken: no rule calls an error what the documents show."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from dpd_infra.catalog.crd.validate import validate_document
from dpd_infra.rules.check import check, errors
from tests.pure.rules.kit import raw_stack

HEAD = """
apiVersion: inference.sagemaker.aws.amazon.com/v1
kind: InferenceEndpointConfig
metadata: {name: NAME, namespace: default}
"""

# After: deploying a model from S3 with the LMI container, which serves 8080.
S3_LMI = """
spec:
  modelName: deepseek15b
  endpointName: deepseek15b
  instanceType: ml.g5.8xlarge
  invocationEndpoint: invocations
  modelSourceConfig:
    modelSourceType: s3
    s3Storage: {bucketName: my-models, region: us-east-2}
    modelLocation: deepseek-qwen
    prefetchEnabled: true
  worker:
    resources:
      limits: {nvidia.com/gpu: 1}
      requests: {nvidia.com/gpu: 1, cpu: 25600m, memory: 102Gi}
    image: 763104351884.dkr.ecr.us-east-2.amazonaws.com/djl-inference:0.32.0-lmi14.0.0-cu124
    modelInvocationPort: {containerPort: 8080, name: http}
    modelVolumeMount: {name: model-weights, mountPath: /opt/ml/model}
    environmentVariables:
      - {name: OPTION_ROLLING_BATCH, value: vllm}
      - {name: SERVING_CHUNKED_READ_TIMEOUT, value: "480"}
      - {name: DJL_OFFLINE, value: "true"}
      - {name: NUM_SHARD, value: "1"}
"""

# After: the same from FSx for Lustre.
FSX_LMI = S3_LMI.replace("modelSourceType: s3", "modelSourceType: fsx").replace(
    "s3Storage: {bucketName: my-models, region: us-east-2}", "fsxStorage: {fileSystemId: fs-0123456789abcdef0}"
)

# After: a model of the Hugging Face hub with vLLM.
HUB_VLLM = """
spec:
  modelName: qwen
  instanceType: ml.g6.12xlarge
  replicas: 2
  invocationEndpoint: v1/chat/completions
  loadBalancer: {healthCheckPath: /health}
  modelSourceConfig:
    modelSourceType: huggingface
    huggingFaceModel:
      modelId: Qwen/Qwen3-8B
      commitSHA: 6f6073b423013f6a7d4d9f39144961bfbfbc386b
      tokenSecretRef: {name: hf-token, key: token}
  worker:
    image: vllm/vllm-openai:v0.19.0
    args: ["--model", "/opt/ml/model", "--tensor-parallel-size", "4", "--max-model-len", "8192"]
    resources:
      limits: {nvidia.com/gpu: "4"}
      requests: {nvidia.com/gpu: "4", cpu: "24", memory: 96Gi}
    modelInvocationPort: {containerPort: 8000}
    modelVolumeMount: {name: model-weights}
    requestLimits: {maxConcurrentRequests: 200, maxQueueSize: 50}
"""

# After: KV caching and intelligent routing.
KV_CACHE = """
spec:
  modelName: Llama-3.1-8B-Instruct
  instanceType: ml.g5.24xlarge
  invocationEndpoint: v1/completions
  replicas: 2
  modelSourceConfig:
    modelSourceType: s3
    s3Storage: {bucketName: my-models, region: us-west-2}
    modelLocation: models/Llama-3.1-8B-Instruct
  kvCacheSpec:
    enableL1Cache: true
    enableL2Cache: true
    l2CacheSpec: {l2CacheBackend: redis, l2CacheLocalUrl: redis://redis.redis-system.svc.cluster.local:6379}
  intelligentRoutingSpec: {enabled: true, routingStrategy: kvaware}
  metrics: {enabled: true, modelMetrics: {port: 8000}}
  loadBalancer: {healthCheckPath: /health}
  worker:
    image: lmcache/vllm-openai:v0.4.3
    args: ["--model", "/opt/ml/model", "--max-model-len", "20000", "--tensor-parallel-size", "4"]
    resources:
      limits: {nvidia.com/gpu: "4"}
      requests: {cpu: "6", memory: 30Gi, nvidia.com/gpu: "4"}
    modelInvocationPort: {containerPort: 8000, name: http}
    modelVolumeMount: {name: model-weights, mountPath: /opt/ml/model}
    environmentVariables:
      - {name: PYTHONHASHSEED, value: "123"}
      - {name: CUDA_VISIBLE_DEVICES, value: "0,1,2,3"}
"""

# After: autoscaling with KEDA.
AUTOSCALED = S3_LMI.replace(
    "spec:\n",
    """spec:
  autoScalingSpec:
    minReplicaCount: 0
    maxReplicaCount: 5
    cloudWatchTrigger:
      name: SageMaker-Invocations
      namespace: AWS/SageMaker
      useCachedMetrics: false
      metricName: Invocations
      targetValue: 10
      dimensions: [{name: EndpointName, value: deepseek15b}, {name: VariantName, value: AllTraffic}]
    prometheusTrigger:
      name: Prometheus-Trigger
      serverAddress: https://aps-workspaces.us-east-2.amazonaws.com/workspaces/ws-11111111-2222-3333-4444-555555555555
      query: sum(rate(model_invocations_total[1m]))
      targetValue: 10
""",
    1,
)

# After: custom certificates and DNS.
CERTIFIED = HUB_VLLM.replace(
    "spec:\n",
    """spec:
  tlsConfig:
    customCertificateConfig:
      acmArn: arn:aws:acm:us-east-2:111122223333:certificate/12345678-1234-1234-1234-123456789012
      domainName: llm.example.com
  dnsConfig: {hostedZoneId: Z0123456789ABC}
""",
    1,
)

# After: a model on a volume of the cluster, nodes by affinity, probes.
VOLUME = """
spec:
  modelName: llama
  nodeAffinity:
    requiredDuringSchedulingIgnoredDuringExecution:
      nodeSelectorTerms:
        - matchExpressions: [{key: node.kubernetes.io/instance-type, operator: In, values: [ml.p5.48xlarge, ml.p5en.48xlarge]}]
  invocationEndpoint: v1/chat/completions
  loadBalancer: {healthCheckPath: /health}
  modelSourceConfig: {modelSourceType: kubernetesVolume, modelLocation: llama}
  kubernetes:
    serviceAccountName: serving
    volumes: [{name: model-weights, persistentVolumeClaim: {claimName: weights}}]
  dataCapture: {loadBalancer: {enabled: true}}
  worker:
    image: 111122223333.dkr.ecr.us-east-2.amazonaws.com/serving:2026-11-01
    command: ["/bin/bash", "-c"]
    args: ["exec vllm serve /opt/ml/model/llama --port 8000 --tensor-parallel-size=8 --max-model-len 32k"]
    resources:
      limits: {nvidia.com/gpu: 8, memory: 1000Gi}
      requests: {nvidia.com/gpu: 8, cpu: 90}
    modelInvocationPort: {containerPort: 8000}
    modelVolumeMount: {name: model-weights, mountPath: /opt/ml/model}
    probes:
      startupProbe: {httpGet: {path: /health, port: 8000}, failureThreshold: 90, periodSeconds: 10}
      livenessProbe: {httpGet: {path: /health, port: 8000}}
"""

# After: the DPD guide, with several prefillers on pools of their own, EFA requested, and the blog's flags.
SEVERAL = """
spec:
  modelName: Llama-3.3-70B-Instruct
  endpointName: llama
  instanceTypes: [ml.p5en.48xlarge, ml.p5e.48xlarge]
  invocationEndpoint: v1/chat/completions
  loadBalancer: {healthCheckPath: /health}
  metrics: {enabled: true, modelMetrics: {port: 8000}}
  modelSourceConfig:
    modelSourceType: s3
    s3Storage: {bucketName: my-models, region: us-east-2}
    modelLocation: Llama-3.3-70B-Instruct
  kvCacheSpec: {enableL1Cache: true}
  intelligentRoutingSpec: {enabled: true, routingStrategy: session}
  pdSpec:
    routingThreshold: 6000
    topologySpec: {sameAZ: true, availabilityZone: us-east-2a}
    prefillSpec:
      replicas: 3
      args: ["--enforce-eager", "--max-num-seqs", "4"]
      nodeSelector: {sagemaker.amazonaws.com/instance-group-name: prefill}
      resources:
        requests: {nvidia.com/gpu: "8", vpc.amazonaws.com/efa: "16", cpu: "128", memory: 1500Gi}
        limits: {nvidia.com/gpu: "8", vpc.amazonaws.com/efa: "16"}
    decodingSpec:
      replicas: 1
      args: ["--max-num-seqs", "32", "--gpu-memory-utilization", "0.7"]
      nodeSelector: {sagemaker.amazonaws.com/instance-group-name: decode}
      resources:
        requests: {nvidia.com/gpu: "8", vpc.amazonaws.com/efa: "16"}
        limits: {nvidia.com/gpu: "8", vpc.amazonaws.com/efa: "16"}
  worker:
    image: lmcache/vllm-openai:v0.4.3
    args: ["--model", "/opt/ml/model", "--port=8000", "-tp", "8", "--max_model_len", "16K", "--gpu-memory-utilization", "0.75"]
    resources:
      limits: {nvidia.com/gpu: "8"}
      requests: {nvidia.com/gpu: "8", cpu: "96", memory: 1024Gi}
    modelInvocationPort: {containerPort: 8000, name: http}
    modelVolumeMount: {name: model-weights, mountPath: /opt/ml/model}
    environmentVariables:
      - {name: PD_BUFFER_SIZE, value: "17179869184"}
      - {name: LMCACHE_SAVE_DECODE_CACHE, value: "False"}
      - {name: PYTHONHASHSEED, value: "0"}
      - {name: VLLM_LOGGING_LEVEL, value: INFO}
"""

DOCUMENTS = {
    "s3-lmi": S3_LMI,
    "fsx-lmi": FSX_LMI,
    "hub-vllm": HUB_VLLM,
    "kv-cache": KV_CACHE,
    "autoscaled": AUTOSCALED,
    "certified": CERTIFIED,
    "volume": VOLUME,
    "several-prefillers": SEVERAL,
}


def manifest(name: str) -> dict[str, Any]:
    return yaml.safe_load(HEAD.replace("NAME", name) + DOCUMENTS[name])


@pytest.mark.parametrize("name", DOCUMENTS)
@pytest.mark.parametrize("operator", [None, "v1.4.0-eksbuild.1", "v2.1.0-eksbuild.1"])
def test_no_rule_calls_it_an_error(name: str, operator: str | None) -> None:
    assert [f"{finding.rule} {finding.what}" for finding in errors(check(raw_stack(manifest(name), operator)))] == []


@pytest.mark.parametrize("name", DOCUMENTS)
def test_the_documents_are_ones_that_the_api_server_takes(name: str) -> None:
    assert [problem.message for problem in validate_document(manifest(name))] == []
