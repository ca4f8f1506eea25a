"""The main job: a small CNN on the UCI handwritten digits, from data to saved and reloaded model."""
