"""What several plugins share: MiniLM, where weights are found, devices and precision, batches by length."""
