"""Parts shared by plugins: MiniLM and MPNet, the place of model files, devices and precision, batches by length."""
