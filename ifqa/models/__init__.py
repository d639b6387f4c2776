"""Parts shared by plugins: the span reader's encoder, the place of model files, devices and precision, batches by length."""
