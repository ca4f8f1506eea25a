"""What the package tells about its ops, to people and to other programs. Loaded when somebody asks."""
