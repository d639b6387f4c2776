"""Reader 'extractive', the default: spans and computed answers of all passages under one
softmax.
"""
