"""IAM documents as IAM takes them: the grammar, and what it says of one that breaks it.

A compact check of its own, and no linter: IAM accepts much that a linter warns of (unknown actions, wide resources), a rehearsal refuses
what IAM refuses, and it has to do so wherever this library is installed. The tests hold it against parliament.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

VERSIONS = ("2012-10-17", "2008-10-17")
SYNTAX = "Syntax errors in policy."

_TOP = {"Version", "Id", "Statement"}
_ELEMENTS = {"Sid", "Effect", "Action", "NotAction", "Resource", "NotResource", "Condition", "Principal", "NotPrincipal"}
_OPERATORS = frozenset(
    {
        *(f"{kind}{how}" for kind in ("String", "Arn") for how in ("Equals", "NotEquals", "Like", "NotLike")),
        *(f"String{how}IgnoreCase" for how in ("Equals", "NotEquals")),
        *(
            f"{kind}{how}"
            for kind in ("Numeric", "Date")
            for how in ("Equals", "NotEquals", "LessThan", "LessThanEquals", "GreaterThan", "GreaterThanEquals")
        ),
        *("Bool", "BinaryEquals", "IpAddress", "NotIpAddress", "Null"),
    }
)
_SID = re.compile(r"[A-Za-z0-9]*")
_VENDOR = re.compile(r"[A-Za-z0-9.-]+")
_RESOURCE = re.compile(r"arn:(\*|aws[a-z-]*):[^:]+:[^:]*:[^:]*:.+", re.DOTALL)
_SERVICE = re.compile(r"[a-z0-9.-]+\.amazonaws\.com(\.cn)?|[a-z0-9.-]+\.aws\.internal|[a-z0-9.-]+\.aws")
_AWS = re.compile(r"\*|\d{12}|arn:aws[a-z-]*:(iam|sts)::\d{12}:.+|AIDA\w+|AROA\w+")
_FEDERATED = re.compile(r"arn:aws[a-z-]*:iam::\d{12}:(oidc|saml)-provider/.+|[a-z0-9.-]+\.[a-z]{2,}")


def policy_problem(text: str, *, trust: bool = False) -> str | None:
    """What IAM says of a policy, or None where it takes it. `trust` is a role's trust policy: principals instead of resources."""
    try:
        document = json.loads(text, object_pairs_hook=_no_duplicates)
    except ValueError:
        return SYNTAX
    if not isinstance(document, dict) or not document.keys() <= _TOP or document.get("Version", VERSIONS[0]) not in VERSIONS:
        return SYNTAX
    found = document.get("Statement")
    statements = [found] if isinstance(found, dict) else found
    if not isinstance(statements, list) or not statements or not all(isinstance(item, dict) for item in statements):
        return SYNTAX
    for statement in statements:
        if problem := next(_problems(statement, trust=trust), None):
            return problem
    sids = [statement["Sid"] for statement in statements if statement.get("Sid")]
    return "Statement IDs (SID) in a single policy must be unique." if len(set(sids)) < len(sids) else None


def account_principals(text: str, account: str) -> Iterator[str]:
    """The roles and users of an account that a policy names as principals."""
    for statement in _statements(text):
        principal = statement.get("Principal")
        for name in (_texts(principal.get("AWS")) or []) if isinstance(principal, Mapping) else []:
            if re.fullmatch(rf"arn:aws[a-z-]*:iam::{account}:(role|user)/.+", name):
                yield name


def _statements(text: str) -> list[Mapping[str, Any]]:
    found = json.loads(text).get("Statement")
    return found if isinstance(found, list) else [found]


def _problems(statement: Mapping[str, Any], *, trust: bool) -> Iterator[str]:
    if not statement.keys() <= _ELEMENTS or statement.get("Effect", "Allow") not in ("Allow", "Deny"):
        yield SYNTAX
    for one, other in (("Action", "NotAction"), ("Resource", "NotResource"), ("Principal", "NotPrincipal")):
        if one in statement and other in statement:
            yield SYNTAX
    if "Effect" not in statement:
        yield "Missing required field Effect"
    for key in ("Action", "NotAction", "Resource", "NotResource"):
        if key in statement and _texts(statement[key]) is None:
            yield SYNTAX
    sid = statement.get("Sid", "")
    if not isinstance(sid, str) or not _SID.fullmatch(sid):
        yield "Statement IDs (SID) must be alpha-numeric. Check that your input satisfies the regular expression [0-9A-Za-z]*"
    yield from _condition(statement.get("Condition", {}))
    if not (statement.get("Action") or statement.get("NotAction")):
        yield "Missing required field Action" if trust else "Policy statement must contain actions."
    for action in [*(_texts(statement.get("Action")) or []), *(_texts(statement.get("NotAction")) or [])]:
        yield from _action(action)
    yield from _trust_parts(statement) if trust else _identity_parts(statement)


def _identity_parts(statement: Mapping[str, Any]) -> Iterator[str]:
    if "Principal" in statement or "NotPrincipal" in statement:
        yield "Policy document should not specify a principal."
    resources = [*(_texts(statement.get("Resource")) or []), *(_texts(statement.get("NotResource")) or [])]
    if not resources:
        yield "Policy statement must contain resources."
    for resource in resources:
        if resource != "*" and not _RESOURCE.fullmatch(resource):
            yield f'Resource {resource} must be in ARN format or "*".'


def _trust_parts(statement: Mapping[str, Any]) -> Iterator[str]:
    if "Resource" in statement or "NotResource" in statement:
        yield "Has prohibited field Resource"
    principal = statement.get("Principal") or statement.get("NotPrincipal")
    if not principal:
        yield "Missing required field Principal"
    if isinstance(principal, str) and principal != "*":
        yield SYNTAX
    if not isinstance(principal, Mapping):
        return
    for kind, names in principal.items():
        form = {"Service": _SERVICE, "AWS": _AWS, "Federated": _FEDERATED}.get(kind)
        listed = _texts(names)
        if listed is None or (form is None and kind != "CanonicalUser"):
            yield SYNTAX
            return
        for name in listed:
            if form is not None and not form.fullmatch(name):
                yield f'Invalid principal in policy: "{_KIND.get(kind, kind)}":"{name}"'


_KIND = {"Service": "SERVICE", "Federated": "FEDERATED"}


def _condition(condition: Any) -> Iterator[str]:
    if not isinstance(condition, dict):
        yield SYNTAX
        return
    for operator, tests in condition.items():
        bare = operator.removeprefix("ForAllValues:").removeprefix("ForAnyValue:").removesuffix("IfExists")
        if bare not in _OPERATORS or not isinstance(tests, dict):
            yield SYNTAX
            return
        for key, values in tests.items():
            if ":" not in key:
                yield "Actions/Conditions must be prefaced by a vendor, e.g., iam, sdb, ec2, etc."
            for value in values if isinstance(values, list) else [values]:
                if not isinstance(value, str | bool | int | float):
                    yield SYNTAX


def _action(action: str) -> Iterator[str]:
    if action == "*":
        return
    vendor, colon, name = action.partition(":")
    if not colon:
        yield "Actions/Conditions must be prefaced by a vendor, e.g., iam, sdb, ec2, etc."
    elif ":" in name:
        yield "Actions/Condition can contain only one colon."
    elif not _VENDOR.fullmatch(vendor):
        yield f"Vendor {vendor} is not valid"


def _texts(value: Any) -> list[str] | None:
    """A text or a list of texts as a list; None for anything else that is there."""
    if value is None:
        return []
    listed = value if isinstance(value, list) else [value]
    return listed if all(isinstance(item, str) for item in listed) else None


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    keys = [key for key, _ in pairs]
    if len(set(keys)) < len(keys):
        raise ValueError("a key stands twice")
    return dict(pairs)
