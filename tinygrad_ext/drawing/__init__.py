"""Pictures of graphs: where boxes stand, and what that is in SVG."""
