"""Files that hold tensors: written, replaced, judged and read."""
