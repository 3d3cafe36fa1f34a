"""Stores of any gymnasium environment: frames, actions, rewards, and what is known about the state."""
