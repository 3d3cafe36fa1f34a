"""From an Atari game to a verified frame store with labels. No torch here, so collectors start fast and stay small."""
