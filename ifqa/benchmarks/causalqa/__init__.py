"""Webis-CausalQA-22: causal questions of ten datasets (Bondarenko et al., COLING 2022)."""
