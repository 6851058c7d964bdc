"""The model store: a private bucket, and one job a model that copies it in from the Hugging Face hub."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pulumi
import pulumi_kubernetes as kubernetes

from dpd_infra.components import tokens
from dpd_infra.components._base import Component, handle_of, minutes
from dpd_infra.components._buckets import MadeBucket, make_bucket
from dpd_infra.components._roles import MadeRole, make_role
from dpd_infra.components.account import Account
from dpd_infra.components.handles import ControlPlaneHandle
from dpd_infra.plan.iam import staging_role
from dpd_infra.plan.iam.trust import ServiceAccount
from dpd_infra.render.staging import SCRIPT, TOKEN_KEY, job_name, render_job, staging_script
from dpd_infra.spec.model_store import ModelStoreSpec, StoredModel

_GRACE_MINUTES = 10
"""Pulumi waits longer than the job may run, so that its end is told in Kubernetes's words."""


class ModelStore(Component):
    """A bucket for models: encrypted, closed to the public, over TLS only, and filled once.

    A model is copied by a Kubernetes Job, which Pulumi waits for; a Job that is made anew finds the marker of its revision and ends at
    once. The bucket is never emptied by Pulumi.
    """

    token = tokens.MODEL_STORE

    bucket_name: str
    """The bucket's name, known beforehand."""
    bucket_arn: pulumi.Output[str]
    uris: Mapping[str, str]
    """Where each model is, `s3://bucket/folder`, by its name in the spec."""
    resources: tuple[pulumi.Resource, ...]
    """What must stand before an endpoint reads a model: the bucket and every copy."""

    def __init__(
        self,
        name: str,
        spec: ModelStoreSpec,
        *,
        account: Account,
        control_plane: ControlPlaneHandle,
        after: Sequence[pulumi.Resource] = (),
        hugging_face_tokens: Mapping[str, pulumi.Input[str]] | None = None,
        image_mirrors: Mapping[str, str] | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """`after` is what the jobs wait for: nodes to run on.

        `hugging_face_tokens` has the secret behind each `token.configKey`, by that key.
        Raises `pulumi.RunError` where a model names a configuration key and no token is given.
        """
        control_plane = handle_of(control_plane, ControlPlaneHandle, "control_plane")
        self.bucket_name = spec.bucket or account.naming.model_bucket(account.account_id)
        given = dict(hugging_face_tokens or {})
        keys = require_tokens(spec, given)
        super().__init__(name, {"bucket": self.bucket_name}, opts)
        self._at, self._spec, self._account, self._control_plane = name, spec, account, control_plane

        made = make_bucket(
            self,
            f"{name}-models",
            bucket_name=self.bucket_name,
            versioned=False,
            account=account,
            suffix="models",
            emptied=False,
            protect=spec.protect,
        )
        self.bucket_arn = made.bucket.arn
        self.uris = {model: f"s3://{self.bucket_name}/{stored.folder}" for model, stored in spec.models.items()}
        jobs = self._jobs(made, after, keys, given, image_mirrors or {}) if spec.models else ()
        self.resources = (*made.resources, *jobs)
        self.register_outputs({"bucket": self.bucket_name, "bucketArn": self.bucket_arn, "uris": dict(self.uris)})

    def _jobs(
        self,
        bucket: MadeBucket,
        after: Sequence[pulumi.Resource],
        keys: Mapping[str, str],
        given: Mapping[str, pulumi.Input[str]],
        image_mirrors: Mapping[str, str],
    ) -> tuple[pulumi.Resource, ...]:
        spec = self._spec
        who = ServiceAccount(spec.namespace, f"{self._at}-staging")
        role = self._role(bucket, who)
        inside = self._child(provider=self._control_plane.kubernetes_provider, depends_on=(*after, *self._control_plane.resources))
        account = kubernetes.core.v1.ServiceAccount(
            f"{self._at}-staging",
            metadata={"name": who.name, "namespace": who.namespace, "annotations": {"eks.amazonaws.com/role-arn": role.arn}},
            opts=inside,
        )
        script = kubernetes.core.v1.ConfigMap(
            f"{self._at}-staging-script",
            metadata={"name": f"{self._at}-staging-script", "namespace": spec.namespace},
            data={SCRIPT: staging_script()},
            opts=inside,
        )
        secrets = {
            key: kubernetes.core.v1.Secret(
                f"{self._at}-token-{index}",
                metadata={"name": f"{self._at}-hugging-face-{index}", "namespace": spec.namespace},
                string_data={TOKEN_KEY: pulumi.Output.secret(given[key])},
                opts=pulumi.ResourceOptions.merge(inside, pulumi.ResourceOptions(additional_secret_outputs=["data", "stringData"])),
            )
            for index, key in enumerate(sorted(set(keys.values())))
        }
        names = {key: f"{self._at}-hugging-face-{index}" for index, key in enumerate(sorted(secrets))}
        before = (*bucket.resources, *role.resources, account, script, *after)
        return tuple(
            self._job(model, stored, who.name, names.get(keys.get(model, "")), image_mirrors, (*before, *secrets.values()))
            for model, stored in sorted(spec.models.items())
        )

    def _job(
        self,
        name: str,
        model: StoredModel,
        service_account: str,
        made_secret: str | None,
        image_mirrors: Mapping[str, str],
        before: Sequence[pulumi.Resource],
    ) -> kubernetes.batch.v1.Job:
        token: tuple[str, str] | None = None
        if made_secret is not None:
            token = (made_secret, TOKEN_KEY)
        elif model.token is not None and model.token.secret_name is not None:
            token = (model.token.secret_name, model.token.key or TOKEN_KEY)
        document = render_job(
            self._spec,
            model,
            name=job_name(self._at, name, model),
            bucket=self.bucket_name,
            region=self._account.region,
            service_account=service_account,
            config_map=f"{self._at}-staging-script",
            token_secret=token,
            image_mirrors=image_mirrors,
        )
        limit = minutes(self._spec.timeout_minutes + _GRACE_MINUTES)
        return kubernetes.batch.v1.Job(
            f"{self._at}-{name}",
            metadata=document["metadata"],
            spec=document["spec"],
            opts=self._child(
                provider=self._control_plane.kubernetes_provider,
                depends_on=before,
                timeouts=pulumi.CustomTimeouts(create=limit, update=limit),
            ),
        )

    def _role(self, bucket: MadeBucket, who: ServiceAccount) -> MadeRole:
        folders = [model.folder for model in self._spec.models.values()]
        cluster = self._control_plane
        plan = pulumi.Output.all(provider_arn=cluster.oidc_provider_arn, issuer=cluster.oidc_issuer, bucket_arn=bucket.bucket.arn).apply(
            lambda known: staging_role(account=who, folders=folders, **known)
        )
        return make_role(
            self,
            f"{self._at}-staging-role",
            plan,
            role_name=self._account.naming.role("model-staging"),
            account=self._account,
            suffix="model-staging-role",
        )


def require_tokens(spec: ModelStoreSpec, given: Mapping[str, pulumi.Input[str]]) -> dict[str, str]:
    """The configuration key of each model's token, by model. Raises `pulumi.RunError` where `given` lacks one."""
    keys = {model: stored.token.config_key for model, stored in spec.models.items() if stored.token and stored.token.config_key}
    if missing := sorted(set(keys.values()) - set(given)):
        raise pulumi.RunError(
            f"the model store names {', '.join(missing)} for its tokens, and their secrets are not given: pass "
            "hugging_face_tokens=stack.hugging_face_tokens()"
        )
    return keys
