"""What an InferenceEndpointConfig says, read once for all rules: roles, flags, environment, nodes, model. No value is trusted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any

from dpd_infra.catalog.instance_types import Gpu, instance_type
from dpd_infra.catalog.model_servers import ModelServer, model_server
from dpd_infra.catalog.models import KvFormat, ModelShape
from dpd_infra.catalog.node_sizes import NodeSize, node_size
from dpd_infra.plan.endpoint_pods import most_by_scaling
from dpd_infra.plan.mirrors import original
from dpd_infra.plan.quantities import is_whole, quantity
from dpd_infra.plan.served import kv_format, model_as_served, model_by_name, model_names
from dpd_infra.plan.sizing.buffer import CHUNK_TOKENS
from dpd_infra.plan.sizing.memory import DEFAULT_MAX_NUM_BATCHED_TOKENS
from dpd_infra.plan.worker_args import Flag, WorkerArgs, server_args
from dpd_infra.render.endpoint_roles import EFA_RESOURCE, GPU_RESOURCE, INSTANCE_TYPE_LABEL
from dpd_infra.rules.environment import Variable
from dpd_infra.spec.finding import Path
from dpd_infra.spec.values import count, entries, mapping, text
from dpd_infra.spec.vocabulary import Role

PREFILL_SEQUENCES, DECODE_SEQUENCES = 16, 32
"""`--max-num-seqs` of each role where nothing is said (DPD guide, tuning table)."""

_ROLE_PATHS: dict[Role, Path] = {Role.PREFILL: ("spec", "pdSpec", "prefillSpec"), Role.DECODE: ("spec", "pdSpec", "decodingSpec")}
_SCALING_KEYS = {Role.PREFILL: "prefillAutoScaling", Role.DECODE: "decodingAutoScaling"}


@dataclass(frozen=True)
class ServerReading:
    """The pods of one role, or of an endpoint without roles."""

    name: str
    """`prefill`, `decode`, or `server`."""
    path: Path
    """Of the role's block in the manifest; `("spec",)` without roles."""
    resources_path: Path
    block: Mapping[str, Any]
    resources: Mapping[str, Any]
    scaling: Mapping[str, Any] | None
    scaling_path: Path
    args: WorkerArgs
    sequences: int | None
    """What `--max-num-seqs` is where nothing is said; None where no document says."""

    def asked(self, resource: str) -> Decimal | None:
        """What a pod requests of a resource; Kubernetes takes the limit where there is no request. None: nothing."""
        for kind in ("requests", "limits"):
            found = quantity(mapping(self.resources.get(kind)).get(resource))
            if found is not None:
                return found
        return None

    @cached_property
    def gpus(self) -> int:
        """GPUs a pod; 0 where none are asked for, or a part of one, which Kubernetes refuses."""
        asked = self.asked(GPU_RESOURCE) or Decimal(0)
        return int(asked) if is_whole(asked) else 0

    @cached_property
    def efa_devices(self) -> int:
        """EFA devices a pod asks for."""
        return int(self.asked(EFA_RESOURCE) or 0)

    @cached_property
    def replicas(self) -> int:
        """Pods without autoscaling."""
        found = count(self.block.get("replicas"))
        return 1 if found is None else found

    @cached_property
    def most_replicas(self) -> int:
        """Pods at most, autoscaling included."""
        most = most_by_scaling(self.scaling)
        return self.replicas if most is None else most

    @cached_property
    def tensor_parallel_size(self) -> int | None:
        """The size in force, 1 being vLLM's default; None where what stands there is no number."""
        return self.args.integer("tensor-parallel-size") if self.args.last("tensor-parallel-size") else 1

    @cached_property
    def engine_gpus(self) -> int | None:
        """GPUs that one server takes: all of its parallel sizes; None where one is no number."""
        product = self.tensor_parallel_size
        for name in ("pipeline-parallel-size", "prefill-context-parallel-size", "data-parallel-size"):
            if self.args.last(name):
                size = self.args.integer(name)
                product = product * size if product is not None and size is not None else None
        return product

    @cached_property
    def batched_tokens(self) -> int | None:
        """`--max-num-batched-tokens`, or vLLM's default on GPUs of this class; None where what stands there is no number."""
        given = self.args.last("max-num-batched-tokens")
        return given.integer if given else DEFAULT_MAX_NUM_BATCHED_TOKENS

    @cached_property
    def most_sequences(self) -> int | None:
        """`--max-num-seqs`, or the guide's default for the role."""
        given = self.args.last("max-num-seqs")
        return given.integer if given else self.sequences

    @cached_property
    def kv_format(self) -> KvFormat | None:
        """How the KV cache is held; None for a format that sizing does not know."""
        return kv_format(self.args)


class ManifestReading:
    """One manifest, read."""

    def __init__(self, manifest: Mapping[str, Any], image_mirrors: Mapping[str, str] | None = None) -> None:
        self.manifest = manifest
        self._mirrors = image_mirrors or {}
        self.spec = mapping(manifest.get("spec"))
        self.worker = mapping(self.spec.get("worker"))

    @cached_property
    def disaggregated(self) -> bool:
        """Whether there is a pdSpec."""
        return self.spec.get("pdSpec") is not None

    @cached_property
    def servers(self) -> tuple[ServerReading, ...]:
        """Prefill and decode, or the one kind of pod of an endpoint without roles."""
        if not self.disaggregated:
            path: Path = ("spec", "worker", "resources")
            resources, scaling = mapping(self.worker.get("resources")), self.spec.get("autoScalingSpec")
            place: Path = ("spec", "autoScalingSpec")
            return (
                ServerReading("server", ("spec",), path, self.spec, resources, _some(scaling), place, self._shared_args, sequences=None),
            )
        return (self._role(Role.PREFILL, PREFILL_SEQUENCES), self._role(Role.DECODE, DECODE_SEQUENCES))

    @cached_property
    def _shared_args(self) -> WorkerArgs:
        return server_args(self.manifest)

    @property
    def prefill(self) -> ServerReading:
        """The prefill role; the only server where there are no roles."""
        return self.servers[0]

    @property
    def decode(self) -> ServerReading:
        """The decode role; the only server where there are no roles."""
        return self.servers[-1]

    def _role(self, role: Role, sequences: int) -> ServerReading:
        path = _ROLE_PATHS[role]
        pd = mapping(self.spec.get("pdSpec"))
        block = mapping(pd.get(str(path[-1])))
        scaling = mapping(pd.get("autoScalingSpec")).get(_SCALING_KEYS[role])
        place: Path = ("spec", "pdSpec", "autoScalingSpec", _SCALING_KEYS[role])
        resources = mapping(block.get("resources"))
        args = server_args(self.manifest, role) if block.get("args") else self._shared_args
        return ServerReading(role.value, path, (*path, "resources"), block, resources, _some(scaling), place, args, sequences)

    @cached_property
    def environment(self) -> dict[str, Variable]:
        """The worker's variables by name; the last of a name that stands there twice."""
        found: dict[str, Variable] = {}
        for index, entry in enumerate(entries(self.worker.get("environmentVariables"))):
            item = mapping(entry)
            value = item.get("value", "" if "valueFrom" not in item else None)
            if name := text(item.get("name")):
                found[name] = Variable(name, value if isinstance(value, str) else None, index)
        return found

    @cached_property
    def instance_types(self) -> tuple[tuple[str, Path], ...]:
        """Each instance type the endpoint may run on, and where it is named: the fields', else those of a required node affinity."""
        found: list[tuple[str, Path]] = []
        if one := text(self.spec.get("instanceType")):
            found.append((one, ("spec", "instanceType")))
        for index, name in enumerate(entries(self.spec.get("instanceTypes"))):
            if text(name):
                found.append((name, ("spec", "instanceTypes", index)))
        return tuple(found) or tuple(self._affinity_types())

    def _affinity_types(self) -> Iterator[tuple[str, Path]]:
        required = "requiredDuringSchedulingIgnoredDuringExecution"
        place: Path = ("spec", "nodeAffinity", required, "nodeSelectorTerms")
        terms = mapping(mapping(self.spec.get("nodeAffinity")).get(required)).get("nodeSelectorTerms")
        for number, term in enumerate(entries(terms)):
            for index, expression in enumerate(entries(mapping(term).get("matchExpressions"))):
                if mapping(expression).get("key") == INSTANCE_TYPE_LABEL and mapping(expression).get("operator") == "In":
                    for at, value in enumerate(entries(expression.get("values"))):
                        if text(value):
                            yield value, (*place, number, "matchExpressions", index, "values", at)

    @cached_property
    def node_sizes(self) -> tuple[NodeSize, ...]:
        """The nodes of the types that are known."""
        return tuple(size for name, _ in self.instance_types if (size := node_size(name)) is not None)

    @cached_property
    def smallest_gpu(self) -> Gpu | None:
        """The GPU with the least memory among the endpoint's types; None where the memory of one is not known."""
        kinds = [instance_type(name) for name, _ in self.instance_types]
        gpus = [kind.gpu for kind in kinds if kind is not None and kind.gpu is not None]
        return min(gpus, key=lambda gpu: gpu.memory_bytes) if gpus and len(gpus) == len(kinds) else None

    @property
    def image(self) -> str:
        """The worker's image; of a mirrored one the image that it is a copy of."""
        return original(text(self.worker.get("image")), self._mirrors)

    @cached_property
    def server(self) -> ModelServer | None:
        """The model server in the image, where it is known."""
        words = [word.text for word in self.prefill.args.positionals]
        module = self.prefill.args.text("m")
        return model_server(self.image, [*words, module] if module else words)

    @cached_property
    def model_names(self) -> tuple[tuple[str, Path], ...]:
        """What the model may be known by, the name of its files first."""
        return model_names(self.spec)

    @cached_property
    def model(self) -> ModelShape | None:
        """The model's shape, where the catalog holds one of its names."""
        return model_by_name(self.model_names)

    def model_in(self, server: ServerReading) -> ModelShape | None:
        """The model as a server holds it: `--quantization` and `--dtype` considered; None where they make it unknown."""
        return model_as_served(self.model, server.args)

    def max_model_len(self, server: ServerReading) -> int | None:
        """Tokens of the longest sequence: `--max-model-len`, else the model's own; None where neither is known."""
        given = server.args.last("max-model-len")
        if given is not None:
            return given.integer if given.integer is not None and given.integer > 0 else None
        return self.model.max_model_len if self.model else None

    @cached_property
    def pd_buffer_bytes(self) -> int | None:
        """PD_BUFFER_SIZE; None where it is not given or is no positive number."""
        variable = self.environment.get("PD_BUFFER_SIZE")
        size = variable.integer if variable else None
        return size if size is not None and size > 0 else None

    @cached_property
    def chunk_tokens(self) -> int | None:
        """LMCache's chunk; None where it is set to something that is no positive number."""
        variable = self.environment.get("LMCACHE_CHUNK_SIZE")
        if variable is None:
            return CHUNK_TOKENS
        return variable.integer if variable.integer is not None and variable.integer > 0 else None

    @cached_property
    def max_model_len_flag(self) -> Flag | None:
        """`--max-model-len` of the decoder."""
        return self.decode.args.last("max-model-len")

    @cached_property
    def is_routed(self) -> bool:
        """Whether there is a router: pdSpec makes one by itself (DPD guide)."""
        return self.disaggregated or mapping(self.spec.get("intelligentRoutingSpec")).get("enabled") is True


def _some(value: Any) -> Mapping[str, Any] | None:
    return value if isinstance(value, dict) else None
