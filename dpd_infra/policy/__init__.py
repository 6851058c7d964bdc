"""The rules as a CrossGuard policy pack: what an organisation holds of every stack, whatever program made it.

`pack/` is what `pulumi preview --policy-pack` is pointed at (`python -m dpd_infra.policy` prints its folder), `policies.py` makes the
policies for it or for a pack of your own, and `recorded.py` holds them against a recording of the test kit. Everything but the pack and
`policies.py` works without the extra `dpd-infra[policy]`.
"""
