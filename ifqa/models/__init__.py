"""Parts shared by plugins: MiniLM, the place of model files, devices and precision, batches by length."""
