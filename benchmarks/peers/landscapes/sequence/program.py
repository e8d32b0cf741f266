# EVOLVE-BLOCK-START
def early(n):
    return 2 * n + 1


def middle(n):
    return n * n + 1


def late(n):
    return n + 1
# EVOLVE-BLOCK-END
