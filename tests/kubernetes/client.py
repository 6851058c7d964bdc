"""A plain client of the Kubernetes API: what it answers, field by field, and nothing in between."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import quote, urlencode

import urllib3

from tests.kubernetes.api_server import Connection

APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"
CONNECTIONS = 4

Document = Mapping[str, Any]
Validation = Literal["Strict", "Warn", "Ignore"]


@dataclass(frozen=True)
class Answer:
    """What the API server said."""

    status: int
    body: dict[str, Any]
    warnings: tuple[str, ...] = ()

    @property
    def taken(self) -> bool:
        """Whether the request was carried out."""
        return self.status < 300

    @property
    def message(self) -> str:
        """Why it was not; empty where it was."""
        return "" if self.taken else str(self.body.get("message", self.body))


def to_yaml_and_json(value: Any) -> str:
    """JSON that is the same value read as YAML, which is how the server reads what is applied: YAML has no escape for half a character."""
    return re.sub(r"[\u007f-\uffff]", lambda found: f"\\u{ord(found[0]):04x}", json.dumps(value, ensure_ascii=False))


class ApiError(Exception):
    """A request that has to succeed did not."""


@dataclass
class Client:
    """One user of one API server; it may be used by several threads."""

    connection: Connection
    _pool: urllib3.PoolManager = field(init=False, repr=False)
    _paths: dict[tuple[str, str], tuple[str, bool]] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        headers = {"Authorization": f"Bearer {self.connection.token}", "Accept": "application/json"}
        self._pool = urllib3.PoolManager(
            ca_certs=str(self.connection.authority), headers=headers, maxsize=CONNECTIONS, block=True, retries=False, timeout=60
        )

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        content_type: str = "application/json",
        headers: Mapping[str, str] | None = None,
        query: Mapping[str, str] | None = None,
    ) -> Answer:
        """One request and its answer, whatever it is."""
        data = None if body is None else to_yaml_and_json(body).encode()
        headers = {**self._pool.headers, "Content-Type": content_type, **(headers or {})}
        address = f"{self.connection.url}{path}" + (f"?{urlencode(query)}" if query else "")
        answer = self._pool.request(method, address, body=data, headers=headers)
        # What no handler takes is answered in plain text.
        is_json = answer.headers.get("Content-Type", "").startswith("application/json")
        content = json.loads(answer.data) if is_json else {"message": answer.data.decode(errors="replace").strip()}
        return Answer(answer.status, content, tuple(answer.headers.getlist("Warning")))

    def path(self, document: Document) -> str:
        """Where an object is, by what it says of itself; an object without a namespace is in `default`."""
        plural, namespaced = self._resource(str(document["apiVersion"]), str(document["kind"]))
        metadata = document["metadata"]
        version = document["apiVersion"]
        root = f"/api/{version}" if "/" not in version else f"/apis/{version}"
        scope = f"/namespaces/{quote(metadata.get('namespace', 'default'))}" if namespaced else ""
        return f"{root}{scope}/{plural}/{quote(metadata['name'])}"

    def _resource(self, version: str, kind: str) -> tuple[str, bool]:
        if (version, kind) not in self._paths:
            root = f"/api/{version}" if "/" not in version else f"/apis/{version}"
            for resource in self.must("GET", root)["resources"]:
                if "/" not in resource["name"]:
                    self._paths[version, resource["kind"]] = (resource["name"], resource["namespaced"])
        return self._paths[version, kind]

    def apply(self, document: Document, *, dry_run: bool = True, subresource: str = "", validation: Validation = "Strict") -> Answer:
        """Server-side apply, by default without storing anything."""
        query = {"fieldManager": "tests", "force": "true", "fieldValidation": validation, **({"dryRun": "All"} if dry_run else {})}
        where = self.path(document) + (f"/{subresource}" if subresource else "")
        return self.request("PATCH", where, document, APPLY, query=query)

    def apply_each(self, documents: Iterable[Document], **options: Any) -> Iterator[Answer]:
        """`apply` for many, several at a time; the answers in the order of the documents."""
        with ThreadPoolExecutor(CONNECTIONS) as threads:
            yield from threads.map(lambda document: self.apply(document, **options), documents)

    def must(self, method: str, path: str, body: Any = None, content_type: str = "application/json") -> dict[str, Any]:
        """A request that has to succeed. Raises `ApiError`."""
        answer = self.request(method, path, body, content_type)
        if not answer.taken:
            raise ApiError(f"{method} {path}: {answer.status} {answer.message}")
        return answer.body

    def make(self, document: Document) -> dict[str, Any]:
        """Store an object. Raises `ApiError`."""
        answer = self.apply(document, dry_run=False)
        if not answer.taken:
            raise ApiError(f"{document['kind']} {document['metadata']['name']}: {answer.status} {answer.message}")
        return answer.body

    def make_namespace(self, name: str) -> None:
        """A namespace to put objects into."""
        self.make({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
