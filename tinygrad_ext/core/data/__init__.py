"""What a tensor is: dtypes and the table that numbers them, storage, geometry, random state."""
