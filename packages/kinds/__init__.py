"""A module for each kind of package. `make` puts files into the release's folder, and yields their paths."""
