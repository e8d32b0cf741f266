import re


def words(text):
    return re.findall(r"[a-z']+", text.lower())


def most_common(text, amount):
    """The most frequent words with their counts; equally frequent ones in alphabetical order."""
    found = words(text)
    distinct = []
    for word in found:
        if word not in distinct:
            distinct.append(word)
    ranked = sorted(distinct, key=lambda word: (-found.count(word), word))
    return [(word, found.count(word)) for word in ranked[:amount]]
