"""T5 as readers use it: networks of Fusion-in-Decoder and RAG, token ids, checkpoints and decoding."""
