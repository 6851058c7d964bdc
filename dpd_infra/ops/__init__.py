"""What is done against the real world: packing charts, and asking an account or a cluster."""
