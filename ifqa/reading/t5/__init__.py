"""T5 readers: checkpoints, the networks of Fusion-in-Decoder and RAG, and decoding."""
