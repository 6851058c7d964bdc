"""The language host of a rehearsal: the engine calls it to run the program, which is a function of this process."""

from __future__ import annotations

import asyncio
import contextvars
import json
import logging
import platform
import sys
import time
from collections.abc import Callable, Iterator
from concurrent import futures
from contextlib import contextmanager, suppress
from importlib import metadata
from typing import Any

import grpc
import pulumi
from google.protobuf import empty_pb2
from pulumi.automation.events import EngineEvent
from pulumi.runtime import reset_options, run_in_stack, set_all_config
from pulumi.runtime.proto import (
    engine_pb2_grpc,
    events_pb2_grpc,
    language_pb2,
    language_pb2_grpc,
    plugin_pb2,
    resource_pb2,
    resource_pb2_grpc,
)

from dpd_infra.rehearsal.channel import own_channel
from dpd_infra.rehearsal.program import ENGINE_IS_GONE, ProgramRun, summary_of

OnEvent = Callable[[EngineEvent], Any]

_ATTEMPTS = 10
_GRACE_SECONDS = 5.0
"""How long what the engine sent last may take to arrive."""


class LanguageHost(language_pb2_grpc.LanguageRuntimeServicer):
    """Runs one program each time the engine asks, in an event loop of its own.

    pulumi.automation serves inline programs with the same few calls, but leaves its event loop open and prints a traceback when the
    engine breaks off first, as it does whenever a resource fails.
    """

    def __init__(self, run: ProgramRun) -> None:
        self.run = run
        self.running = 0

    def Handshake(self, request: Any, context: grpc.ServicerContext) -> language_pb2.LanguageHandshakeResponse:
        return language_pb2.LanguageHandshakeResponse()

    def GetPluginInfo(self, request: Any, context: grpc.ServicerContext) -> plugin_pb2.PluginInfo:
        return plugin_pb2.PluginInfo(version=metadata.version("pulumi"))

    def GetRequiredPlugins(self, request: Any, context: grpc.ServicerContext) -> language_pb2.GetRequiredPluginsResponse:
        return language_pb2.GetRequiredPluginsResponse()

    def GetRequiredPackages(self, request: Any, context: grpc.ServicerContext) -> language_pb2.GetRequiredPackagesResponse:
        return language_pb2.GetRequiredPackagesResponse()

    def About(self, request: Any, context: grpc.ServicerContext) -> language_pb2.AboutResponse:
        return language_pb2.AboutResponse(executable=sys.executable, version=platform.python_version())

    def Cancel(self, request: Any, context: grpc.ServicerContext) -> empty_pb2.Empty:
        return empty_pb2.Empty()

    def Run(self, request: language_pb2.RunRequest, context: grpc.ServicerContext) -> language_pb2.RunResponse:
        self.running += 1
        try:
            # The SDK keeps its settings in context variables: a copied context leaves none behind.
            return contextvars.copy_context().run(self._run, request)
        finally:
            self.running -= 1

    def _run(self, request: language_pb2.RunRequest) -> language_pb2.RunResponse:
        with own_channel(request.monitor_address) as monitor, own_channel(request.args[0]) as engine:
            # Stubs are taken in place of addresses.
            stubs: dict[str, Any] = {
                "engine_address": engine_pb2_grpc.EngineStub(engine),
                "monitor_address": resource_pb2_grpc.ResourceMonitorStub(monitor),
            }
            reset_options(
                project=request.project,
                stack=request.stack,
                parallel=request.parallel,
                preview=request.dryRun,
                organization=request.organization or "organization",
                **stubs,
            )
            self.run.engine_answers = lambda: _answers(stubs["monitor_address"])
            return self._run_connected(request)

    def _run_connected(self, request: language_pb2.RunRequest) -> language_pb2.RunResponse:
        set_all_config(dict(request.config), list(request.configSecretKeys))
        loop = asyncio.new_event_loop()
        # As many threads as Pulumi's Python host takes.
        loop.set_default_executor(futures.ThreadPoolExecutor(max_workers=max(request.parallel, 1) * 4))
        broken_off: grpc.RpcError | None = None

        def stop(loop: asyncio.AbstractEventLoop, failure: dict[str, Any]) -> None:
            # A call to an engine that is gone ends the run; anything else is raised where it is awaited.
            nonlocal broken_off
            if isinstance(error := failure.get("exception"), grpc.RpcError):
                broken_off = error
                loop.stop()

        loop.set_exception_handler(stop)
        try:
            loop.run_until_complete(run_in_stack(self.run))
        except grpc.RpcError as error:
            return self._broken_off(error)
        except pulumi.RunError as error:
            return self._broken_off(error) if ENGINE_IS_GONE in str(error) else language_pb2.RunResponse(error=str(error))
        except Exception as error:  # noqa: BLE001 - a callback on an output may raise anything
            if broken_off is not None:
                return self._broken_off(broken_off)
            self.run.late_failure = summary_of(error)
            return language_pb2.RunResponse(error=self.run.late_failure)
        finally:
            close_loop(loop)
        return language_pb2.RunResponse()

    def _broken_off(self, error: Exception) -> language_pb2.RunResponse:
        """The engine ended before the program did, because a resource failed: what it told of that is the cause.

        Never a success: where the engine told nothing, part of the program has not been run.
        """
        details = error.details() if isinstance(error, grpc.Call) else str(error)
        self.run.broken_off = f"the engine stopped answering before the program ended: {details}"
        return language_pb2.RunResponse(bail=True)

    def wait(self) -> None:
        """Wait until no program runs any more; the engine may be done before its host is."""
        deadline = time.monotonic() + _GRACE_SECONDS
        while self.running and time.monotonic() < deadline:
            time.sleep(0.01)


def _answers(monitor: resource_pb2_grpc.ResourceMonitorStub) -> bool:
    try:
        monitor.SupportsFeature(resource_pb2.SupportsFeatureRequest(id="secrets"), timeout=_GRACE_SECONDS)
    except grpc.RpcError:
        return False
    return True


def close_loop(loop: asyncio.AbstractEventLoop) -> None:
    """Let the unfinished tasks end, then close: a call that fails meanwhile may stop the loop once more."""
    loop.set_exception_handler(lambda _loop, _failure: None)
    for _ in range(_ATTEMPTS):
        pending = asyncio.all_tasks(loop)
        if not pending:
            break
        for task in pending:
            task.cancel()
        with suppress(RuntimeError):
            loop.run_until_complete(asyncio.gather(*pending, return_exceptions=True))
    loop.close()


class _Events(events_pb2_grpc.EventsServicer):
    """Receives the engine's events."""

    def __init__(self, take: OnEvent) -> None:
        self.take = take
        self.streaming = 0

    def StreamEvents(self, request_iterator: Iterator[Any], context: grpc.ServicerContext) -> empty_pb2.Empty:
        self.streaming += 1
        try:
            for request in request_iterator:
                self.take(EngineEvent.from_json(json.loads(request.event)))
        finally:
            self.streaming -= 1
        return empty_pb2.Empty()


@contextmanager
def serve(run: ProgramRun, take: OnEvent) -> Iterator[list[str]]:
    """Serve program and events while the block runs; yields the command-line arguments that point the CLI at them."""
    # The engine leaves tasks of the SDK unfinished when it breaks off; asyncio would print each.
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)
    host, events = LanguageHost(run), _Events(take)
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=8))
    language_pb2_grpc.add_LanguageRuntimeServicer_to_server(host, server)
    events_pb2_grpc.add_EventsServicer_to_server(events, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield [f"--client=127.0.0.1:{port}", "--exec-kind=auto.inline", f"--event-log=tcp://127.0.0.1:{port}"]
    finally:
        host.wait()
        deadline = time.monotonic() + _GRACE_SECONDS
        while events.streaming and time.monotonic() < deadline:
            time.sleep(0.01)
        server.stop(grace=None)
