"""The account of the test kit's answers, as the graph tests name its parts."""

from __future__ import annotations

from dpd_infra.testing.answers import ACCOUNT_ID, REGION, Answers

_ANSWERS = Answers()
ACCOUNT = ACCOUNT_ID
DEPLOYER_SESSION = _ANSWERS.deployer_session_arn
DEPLOYER_ROLE = _ANSWERS.deployer_role_arn
ISSUER = _ANSWERS.issuer

__all__ = ["ACCOUNT", "DEPLOYER_ROLE", "DEPLOYER_SESSION", "ISSUER", "REGION"]
