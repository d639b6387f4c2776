"""Model code that plugins share: MiniLM and MPNet, model files, devices and precision, batches by
length.
"""
