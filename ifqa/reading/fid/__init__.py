"""Fusion-in-Decoder (Izacard & Grave 2021): network, inputs, checkpoints and decoding."""
