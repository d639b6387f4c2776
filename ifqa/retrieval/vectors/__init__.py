"""Dense retrieval's parts: texts to vectors, vectors on disk, and the nearest of them."""
