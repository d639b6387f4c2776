"""Training the span reader."""
