"""What must hold: one function a rule, one id a rule."""
