"""From an Atari game to a verified frame store with labels. No torch here: collectors start fast and stay small."""
