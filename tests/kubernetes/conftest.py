"""A Kubernetes API for every test of this folder, with the operator's CRD: one for each process that runs some of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import find_tool
from tests.kubernetes.api_server import Connection, api_server
from tests.kubernetes.client import Client
from tests.kubernetes.crd import install_crd
from tests.kubernetes.judge import Judge


@pytest.fixture(scope="session")
def kube_apiserver() -> Path:
    """The API server's command."""
    return find_tool("kube-apiserver")


@pytest.fixture(scope="session")
def etcd() -> Path:
    """Its store's command."""
    return find_tool("etcd")


@pytest.fixture(scope="session")
def connection(etcd: Path, kube_apiserver: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connection]:
    """The running API server."""
    with api_server(etcd, kube_apiserver, tmp_path_factory.mktemp("kubernetes-api")) as running:
        yield running


@pytest.fixture(scope="session")
def client(connection: Connection) -> Client:
    """Its administrator; the CRD is there."""
    client = Client(connection)
    install_crd(client)
    return client


@pytest.fixture(scope="session")
def judge(client: Client) -> Judge:
    """The API server as judge of single documents."""
    return Judge(client)
