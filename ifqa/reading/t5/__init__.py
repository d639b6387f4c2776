"""T5 as readers use it: network with Fusion-in-Decoder, token ids, checkpoints and decoding."""
