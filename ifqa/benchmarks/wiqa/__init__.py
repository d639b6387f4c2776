"""WIQA: influence graphs of processes, and "what if" questions made from them."""
