"""Downloads Wikipedia dumps and turns them into disjoint passages of plain text."""
