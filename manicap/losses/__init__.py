"""Losses as pure functions, one family a file. Nothing here knows an encoder, a method or a training loop."""
