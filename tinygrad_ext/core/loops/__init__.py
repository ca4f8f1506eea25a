"""What runs over memory: geometry walked, threads, products, copies."""
