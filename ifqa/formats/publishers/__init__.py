"""Question sets as their publishers lay them out: the ten datasets of CausalQA."""
