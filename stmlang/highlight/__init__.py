"""Colours for texts where no compiler runs: on web pages and in editors without the language server."""
