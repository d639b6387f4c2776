"""Counterfactual questions made from passages by rule, with computed answers."""
