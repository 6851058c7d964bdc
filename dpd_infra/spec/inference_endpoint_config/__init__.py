"""The InferenceEndpointConfig custom resource, field by field."""
