"""The interface endpoints of a closed network: which AWS services nodes, operator and controllers call."""

from __future__ import annotations

from dpd_infra.catalog.sources import HYPERPOD_TERRAFORM, INFERENCE_POLICY, LOAD_BALANCER_CONTROLLER_POLICY, Source

NODE_SERVICES = ("ec2", "ec2messages", "ecr.api", "ecr.dkr", "eks-auth", "logs", "monitoring", "ssm", "ssmmessages", "sts")
"""What HyperPod nodes need: the endpoints of AWS's Terraform modules for closed networks."""

CONTROLLER_SERVICES = ("eks", "elasticloadbalancing", "sagemaker.api")
"""What the operator and the load balancer controller call, by the policies that they have. AWS's modules do not make these: they were
written for training."""

SERVICES = tuple(sorted((*NODE_SERVICES, *CONTROLLER_SERVICES)))
"""Every service that a closed network has an endpoint for, beside S3's gateway."""

SOURCES: tuple[Source, ...] = (HYPERPOD_TERRAFORM, INFERENCE_POLICY, LOAD_BALANCER_CONTROLLER_POLICY)
"""Where they are from."""
