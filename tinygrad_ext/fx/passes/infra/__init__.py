"""What a pass over fx graphs is, a manager of several, and a partitioner."""
