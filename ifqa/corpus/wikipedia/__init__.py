"""Wikipedia's dumps to disjoint passages of plain text."""
