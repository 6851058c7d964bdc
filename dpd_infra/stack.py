"""From a stack file to a checked stack: read, shape, render, rules, and one report with everything that is wrong."""

from __future__ import annotations

import pathlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from pydantic import Field

from dpd_infra.render.endpoint import EndpointContext, RenderedManifest, endpoint_context, render_endpoint
from dpd_infra.rules.accepted import remember
from dpd_infra.rules.check import Silenced, errors, judged
from dpd_infra.rules.report import report
from dpd_infra.rules.subject import ENDPOINTS_PATH, PLATFORM_PATH, EndpointSubject, StackSubject
from dpd_infra.running_program import aws_config, own_config, say, secret, stack_file
from dpd_infra.spec.aws import AwsSettings
from dpd_infra.spec.base import Spec
from dpd_infra.spec.config_keys import NAMESPACE, absent_values, is_ours, key_findings
from dpd_infra.spec.endpoint import EndpointName, EndpointSpec
from dpd_infra.spec.finding import Finding, Path
from dpd_infra.spec.operator import OperatorFacts
from dpd_infra.spec.platform import PlatformSpec
from dpd_infra.spec.sections import build_aws_settings, build_endpoints, misplaced_secrets, shape_finding
from dpd_infra.spec.shape import build
from dpd_infra.spec.shape_rule import unreadable
from dpd_infra.spec.stack_file import StackFile, read_stack_file
from dpd_infra.spec.yaml_source import Document, SourceText, YamlProblem

PLATFORM_KEY = PLATFORM_PATH[-1]
ENDPOINTS_KEY = ENDPOINTS_PATH[-1]
OPERATOR_KEY = f"{NAMESPACE}:operator"
_REGION: Path = ("config", "aws:region")


class StackRefused(Exception):
    """A stack with errors in it: nothing is registered. Its text is the whole report."""

    def __init__(self, findings: Sequence[Finding], documents: Mapping[str, Document] | None = None) -> None:
        super().__init__(report(findings, documents))
        self.findings = tuple(findings)
        self.documents = dict(documents or {})


class StackSpec(Spec):
    """Everything one stack asks for: an account's settings, a platform, and endpoints by name."""

    aws: AwsSettings
    """Region, profile, role and default tags: what every provider follows."""
    platform: PlatformSpec | None = None
    """What the endpoints need. None: another stack has it."""
    operator: OperatorFacts | None = None
    """What the endpoints may expect of another stack's operator; with a platform of its own a stack knows it."""
    endpoints: dict[EndpointName, EndpointSpec] = Field(default_factory=dict)
    """The endpoints by name."""

    @classmethod
    def from_file(cls, path: str | pathlib.Path) -> Self:
        """Read and check a stack file. Raises `StackRefused` with every error; warnings are left to `load_file`."""
        return _accepted(cls, load_file(pathlib.Path(path)))

    @classmethod
    def from_config(cls) -> Self:
        """Read and check the running Pulumi stack's configuration; warnings go to Pulumi's log. Raises `StackRefused` with every error."""
        loaded = load_config()
        if loaded.spec is None:
            raise _refused_in_program(loaded.findings, loaded.documents)
        return _accepted(cls, loaded)

    def manifest(self, name: str) -> RenderedManifest:
        """One endpoint's rendered manifest. Raises `KeyError` for a name that is not there."""
        return render_endpoint(name, self.endpoints[name], _context(name, self.aws.region, self.operator_facts))

    def hugging_face_token(self, name: str) -> Any:
        """The secret behind an endpoint's `model.huggingFace.token.configKey` as a secret Output; None where the endpoint names none.

        Raises `pulumi.ConfigMissingError` where the stack has no such key.
        """
        source = self.endpoints[name].model.hugging_face
        key = source.token.config_key if source is not None and source.token is not None else None
        return None if key is None else secret(key)

    def hugging_face_tokens(self) -> dict[str, Any]:
        """The secrets behind every `token.configKey` of the model store, as secret Outputs by that key.

        Raises `pulumi.ConfigMissingError` where the stack has no such key.
        """
        store = self.platform.model_store if self.platform else None
        models = store.models.values() if store else ()
        return {key: secret(key) for key in sorted({model.token.config_key for model in models if model.token and model.token.config_key})}

    @property
    def operator_facts(self) -> OperatorFacts | None:
        """What is known of the operator: the platform's own, or what is expected of another stack's."""
        return self.platform.operator_facts if self.platform else self.operator


@dataclass(frozen=True, slots=True)
class LoadedStack:
    """What became of a stack file: the spec where it has no errors, and every finding."""

    spec: StackSpec | None
    """None where a finding is an error."""
    subject: StackSubject
    """What the rules read, as far as it could be built."""
    findings: tuple[Finding, ...]
    documents: dict[str, Document] = field(repr=False)
    """By file, for reports."""
    is_ours: bool = True
    """Whether anything in it is for this library."""
    silenced: tuple[Silenced, ...] = ()
    """What endpoints keep quiet, with the reason."""


def load_file(path: pathlib.Path, raw: bytes | SourceText | None = None, operator: OperatorFacts | None = None) -> LoadedStack:
    """Read and check a stack file: every finding, and never an exception for what stands in it.

    `raw` is the file's content where it is at hand already; `operator` is taken in the place of the one that the file names. Raises
    `OSError` for a file that cannot be opened.
    """
    try:
        file = read_stack_file(path, raw)
    except YamlProblem as problem:
        return LoadedStack(None, StackSubject(), (unreadable(problem, str(path)),), {})
    return _load(file.config, file, operator)


def load_config() -> LoadedStack:
    """Read and check the running Pulumi stack's configuration, with the places in its file where that is at hand."""
    loaded = _load(aws_config() | own_config("platform", "endpoints", "operator"), stack_file())
    if not errors(loaded.findings):
        say(loaded.findings, loaded.documents)
    return loaded


def running_aws_settings() -> AwsSettings:
    """What the running Pulumi stack's `aws:` keys say. Raises `StackRefused` where they are wrong."""
    settings, findings = build_aws_settings(aws_config())
    if settings is None or findings:
        raise _refused_in_program(findings, {})
    return settings


def platform_missing() -> StackRefused:
    """The error of a program that makes a platform of a stack that has none."""
    why = "The program makes a Platform of the stack's own, `stack.platform`, and the stack has none."
    fix = f"write {PLATFORM_KEY}: {{name: inference-prod, …}} in the stack file, or make no Platform where stack.platform is None"
    return _refused_in_program([shape_finding(PLATFORM_PATH, f"the needed key {PLATFORM_KEY!r} is missing", why, fix)], {})


def refuse_errors(findings: Sequence[Finding]) -> None:
    """What a component does with its findings: warnings go to Pulumi's log, once each, and an error raises `StackRefused`."""
    if errors(findings):
        raise _refused_in_program(findings, {})
    say(findings, {})


def _refused_in_program(findings: Sequence[Finding], documents: Mapping[str, Document]) -> StackRefused:
    """The same exception as a `pulumi.RunError` too: the host prints such an error's text, and a traceback for any other."""
    import pulumi  # noqa: PLC0415 - everything else here works without Pulumi

    class _Refused(StackRefused, pulumi.RunError):
        __qualname__ = StackRefused.__qualname__

    return _Refused(findings, documents)


def _accepted(cls: type[Any], loaded: LoadedStack) -> Any:
    wrong = errors(loaded.findings)
    if wrong or loaded.spec is None:
        raise StackRefused(loaded.findings, loaded.documents)
    return loaded.spec if cls is StackSpec else cls.model_validate(loaded.spec.model_dump())


def _load(config: Mapping[str, Any], file: StackFile | None, instead: OperatorFacts | None = None) -> LoadedStack:
    findings: list[Finding] = []
    aws, found = build_aws_settings(config)
    findings += found
    platform: PlatformSpec | None = None
    if data := config.get(str(PLATFORM_KEY)):
        platform, found = build(PlatformSpec, data, PLATFORM_PATH, "platform")
        findings += found
    operator: OperatorFacts | None = None
    promised = config.get(OPERATOR_KEY) is not None
    if data := config.get(OPERATOR_KEY):
        operator, found = build(OperatorFacts, data, ("config", OPERATOR_KEY), "operator")
        findings += found
    if instead is not None:
        platform, operator = _with_operator(platform, operator, instead)
    facts = platform.operator_facts if platform else operator
    endpoints, found = build_endpoints(config.get(str(ENDPOINTS_KEY)), ENDPOINTS_PATH)
    # A running program is told of our own keys alone; its file has those that were misspelt.
    written = file.config if file is not None else config
    findings += found + misplaced_secrets(config, [str(PLATFORM_KEY), str(ENDPOINTS_KEY), OPERATOR_KEY]) + key_findings(written)
    # A running program asks Pulumi, which knows more than the file: of environments, and of what a command line set.
    if file is not None and config is file.config and file.whole:
        findings += absent_values(file.config, file.declared)
    region = aws.region if aws and not any(finding.path == _REGION and finding.patch is None for finding in findings) else None
    subject = _subject(region, platform, facts, endpoints, aws.region if aws else "", promised=promised)
    # A value with a patch was read as it was meant, so what the rules say of it holds.
    refused = [place for finding in findings if finding.patch is None for place in (finding.path, *finding.related)]
    verdict = judged(subject, refused=refused)
    findings += verdict.findings
    placed = _placed(findings, file)
    quiet = _placed([entry.finding for entry in verdict.silenced], file)
    silenced = tuple(Silenced(finding, entry.reason) for finding, entry in zip(quiet, verdict.silenced, strict=True))
    spec = None
    if aws is not None and not errors(findings):
        spec = StackSpec(aws=aws, platform=platform, operator=operator, endpoints=endpoints)
        by_subject: dict[str, list[Finding]] = {}
        for finding in placed:
            by_subject.setdefault(finding.subject, []).append(finding)
        for name, endpoint in subject.endpoints.items():
            remember(endpoint, by_subject.get(name, []))
    return LoadedStack(spec, subject, tuple(placed), {file.file: file.document} if file else {}, is_ours(written), silenced)


def _with_operator(
    platform: PlatformSpec | None, operator: OperatorFacts | None, instead: OperatorFacts
) -> tuple[PlatformSpec | None, OperatorFacts]:
    """The platform, or what is expected of another's operator, with another add-on version."""
    version = {"addon_version": instead.addon_version}
    if platform is None:
        return None, operator.model_copy(update=version) if operator else instead
    if platform.existing.operator is not None:
        existing = platform.existing.model_copy(update={"operator": platform.existing.operator.model_copy(update=version)})
        return platform.model_copy(update={"existing": existing}), instead
    return platform.model_copy(update={"operator": platform.operator.model_copy(update=version)}), instead


def _subject(
    region: str | None,
    platform: PlatformSpec | None,
    facts: OperatorFacts | None,
    endpoints: Mapping[str, EndpointSpec],
    rendered: str,
    *,
    promised: bool,
) -> StackSubject:
    """What the rules read; manifests are `rendered` with a region that stands in where none was written."""
    stack = StackSubject(region=region, platform=platform, operator=facts, promises_operator=promised)
    subjects = {}
    for name, spec in endpoints.items():
        subjects[name] = EndpointSubject(name, render_endpoint(name, spec, _context(name, rendered, facts)), spec, stack, facts)
    # Endpoints look at the stack and the stack at its endpoints: the one object that both know is completed here.
    object.__setattr__(stack, "endpoints", subjects)
    return stack


def _context(name: str, region: str, facts: OperatorFacts | None) -> EndpointContext:
    """What an endpoint's manifest takes from the operator it is for, as far as that is known."""
    if facts is None:
        return endpoint_context(name, region=region, addon_version="")
    return endpoint_context(name, region=region, addon_version=facts.addon_version, image_mirrors=facts.image_mirrors)


def _placed(findings: Sequence[Finding], file: StackFile | None) -> list[Finding]:
    if file is None:
        return list(findings)
    return sorted(map(file.document.placed, findings), key=lambda finding: (finding.line, finding.column, finding.rule))
