"""Turns Wikipedia dumps into disjoint passages of plain text."""
