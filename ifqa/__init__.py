"""Open-domain counterfactual question answering: dump -> passages -> index -> retrieve -> read -> score -> report."""

__version__ = "0.1.0"
