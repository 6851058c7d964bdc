"""Whether to disaggregate, and how: verdict, equal-GPU counterfactual, threshold, routing strategy, PD buffer, simulation."""
