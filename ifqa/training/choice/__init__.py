"""Training the readers that choose among the answers a question offers."""
