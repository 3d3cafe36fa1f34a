"""What every folder may use: configs, errors, seeds, files, progress. No torch here."""
