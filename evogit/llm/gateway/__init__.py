"""The only network of coding programs: injects the key, counts usage and holds the limits."""
