"""The only training loop, with exact resume and several processes."""
