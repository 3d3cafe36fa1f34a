"""The only training loop, with bit-identical resume and multi-process training."""
