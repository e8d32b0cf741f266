"""From a move to a candidate commit: proposals of agents, merges, fingerprints of trees and claims.

A `Move` of the selector goes in, a commit with its `proposed` event comes out. Start with `breeder.py`.
"""
