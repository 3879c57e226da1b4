"""From a written expression to a typed one: names looked up, definitions expanded, indices worked out."""
