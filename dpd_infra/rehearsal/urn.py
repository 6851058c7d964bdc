"""What a URN says: the resource's name and its type."""

from __future__ import annotations


def name_of(urn: str) -> str:
    """The resource's name in the program."""
    return urn.rsplit("::", 1)[-1]


def type_of(urn: str) -> str:
    """The resource's own type token: the last of the `$`-joined types."""
    return urn.split("::")[2].rsplit("$", 1)[-1]


def stack_of(urn: str) -> str:
    """The stack's name, without organization and project."""
    return urn.split("::", maxsplit=1)[0].removeprefix("urn:pulumi:")


def project_of(urn: str) -> str:
    """The project's name."""
    return urn.split("::")[1]


def component_of(urn: str) -> str:
    """The nearest component of ours that a URN lies in, `HyperPodCluster`; empty for what lies in none."""
    types = urn.split("::")[2].split("$")
    return next((part.rsplit(":", 1)[-1] for part in reversed(types) if part.startswith("dpd:index:")), "")
