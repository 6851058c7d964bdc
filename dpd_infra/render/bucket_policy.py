"""The policy of the buckets that a platform makes for itself."""

from __future__ import annotations

from typing import Any


def tls_only_policy(bucket_arn: str) -> dict[str, Any]:
    """Refuse every request that is not made over TLS, whoever makes it."""
    return {
        "Version": "2012-10-17",
        "Statement": [
            {
                "Sid": "TlsOnly",
                "Effect": "Deny",
                "Principal": "*",
                "Action": "s3:*",
                "Resource": [bucket_arn, f"{bucket_arn}/*"],
                "Condition": {"Bool": {"aws:SecureTransport": "false"}},
            }
        ],
    }
