"""What a person may ask for: frozen, validated, plain data."""
