"""Fusion-in-Decoder (Izacard & Grave 2021): the network, its inputs, its checkpoints, and how it reads."""
