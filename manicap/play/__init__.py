"""Recorded play, whatever was played: what it looks like, how it is split, what is known about its state."""
