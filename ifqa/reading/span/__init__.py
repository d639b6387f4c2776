"""The default reader: candidate answers of all passages, spans and computed ones, under one softmax."""
