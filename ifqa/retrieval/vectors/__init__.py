"""Parts of dense retrieval: encoders, vectors on disk, and nearest-neighbour search."""
