import json
import random
import time

from textstats import most_common


def text(size):
    rng = random.Random(7)
    letters = "abcdefghijklmnopqrstuvwxyz"
    return " ".join("".join(rng.choices(letters, k=2)) for _ in range(size))


def main():
    sample = text(3000)
    began = time.process_time()
    most_common(sample, 10)
    print(json.dumps({"words": 3000, "milliseconds": 1000 * (time.process_time() - began)}))


if __name__ == "__main__":
    main()
