"""Serve the simulated providers in this process, and tell the engine where they listen."""

from __future__ import annotations

from concurrent import futures
from types import TracebackType
from typing import Self

import grpc
from pulumi.runtime.proto import provider_pb2_grpc

from dpd_infra.rehearsal.account import SimulatedAccount
from dpd_infra.rehearsal.aws import AwsProvider
from dpd_infra.rehearsal.aws_native import AwsNativeProvider
from dpd_infra.rehearsal.kubernetes import KubernetesProvider
from dpd_infra.rehearsal.provider import SimulatedProvider
from dpd_infra.rehearsal.pulumi_eks import EksProvider

PACKAGES = (AwsProvider, AwsNativeProvider, KubernetesProvider, EksProvider)
"""The packages that a rehearsal simulates."""

_LARGEST_MESSAGE = 400 * 1024 * 1024
"""Bytes; the engine's own limit."""


class ProviderServers:
    """One gRPC server a package over one account; a context manager that stops them."""

    def __init__(self, account: SimulatedAccount) -> None:
        self.providers: dict[str, SimulatedProvider] = {kind.package: kind(account) for kind in PACKAGES}
        self._servers: list[grpc.Server] = []
        self._ports: dict[str, int] = {}

    def __enter__(self) -> Self:
        options = [("grpc.max_receive_message_length", _LARGEST_MESSAGE), ("grpc.max_send_message_length", _LARGEST_MESSAGE)]
        for package, provider in self.providers.items():
            server = grpc.server(futures.ThreadPoolExecutor(max_workers=16), options=options)
            provider_pb2_grpc.add_ResourceProviderServicer_to_server(provider, server)
            self._ports[package] = server.add_insecure_port("127.0.0.1:0")
            server.start()
            self._servers.append(server)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for server in self._servers:
            server.stop(grace=None)
        self._servers.clear()

    @property
    def debug_providers(self) -> str:
        """The value of `PULUMI_DEBUG_PROVIDERS`: the engine attaches to these ports instead of starting plugins."""
        return ",".join(f"{package}:{port}" for package, port in self._ports.items())
