"""What follows from a spec by calculation: subnets, groups, names, IAM, sizes. Pure functions."""
