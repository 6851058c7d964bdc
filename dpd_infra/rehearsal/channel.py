"""Connections to an engine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import grpc
from pulumi.runtime._grpc_settings import _GRPC_CHANNEL_OPTIONS


@contextmanager
def own_channel(address: str) -> Iterator[grpc.Channel]:
    """A connection that shares nothing with earlier ones.

    gRPC's shared pool remembers an address that refused: a new engine on the port of one that is gone would be taken for gone too.
    """
    with grpc.insecure_channel(address, options=[*_GRPC_CHANNEL_OPTIONS, ("grpc.use_local_subchannel_pool", 1)]) as channel:
        yield channel
