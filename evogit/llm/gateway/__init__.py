"""The only network of coding programs: injects the key, counts usage and holds the limits.

Requests of programs go in, replies of the provider come out. Start with `forwarding.py`.
"""
