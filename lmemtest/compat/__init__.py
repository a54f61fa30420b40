"""Other packages' functions with this package's statistics: scripts move over by their import line."""
