"""Models on images."""
