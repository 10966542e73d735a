"""Chunking of sentences: features of words in their neighbourhood, and the F1 of chunks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
import scipy.sparse as sp

from .data import Sentence

LEAST = 2  # a feature that occurs less often in training is left out


def features(sentence: Sentence) -> Iterator[list[str]]:
    """Yield, for every word, what is to be known of it and of two words on either side, as text."""
    words, tags, _ = sentence
    pad = ["<", "<"], [">", ">"]
    w = [*pad[0], *(word.lower() for word in words), *pad[1]]
    p = [*pad[0], *tags, *pad[1]]
    shapes = [*pad[0], *map(shape, words), *pad[1]]
    for t, word in enumerate(words, 2):
        told = [f"w{k}={w[t + k]}" for k in (-2, -1, 0, 1, 2)]
        told += [f"p{k}={p[t + k]}" for k in (-2, -1, 0, 1, 2)]
        told += [f"w{k}w={w[t + k]} {w[t + k + 1]}" for k in (-1, 0)]
        told += [f"p{k}p={p[t + k]} {p[t + k + 1]}" for k in (-2, -1, 0, 1)]
        told += [f"p{k}pp={p[t + k]} {p[t + k + 1]} {p[t + k + 2]}" for k in (-2, -1, 0)]
        told += [f"w{k}p={w[t]} {p[t + k]}" for k in (-1, 0, 1)]
        told += [f"s{k}={word[-k:].lower()}" for k in (1, 2, 3, 4) if len(word) > k]
        told += [f"h{k}={shapes[t + k]}" for k in (-1, 0, 1)]
        told.append("1")
        yield told


def shape(word: str) -> str:
    """Return a word with its letters as A and a, its digits as 0, and none of the three twice in a row."""
    text = "".join("A" if c.isupper() else "a" if c.islower() else "0" if c.isdigit() else c for c in word)
    return "".join(c for k, c in enumerate(text) if k == 0 or c != text[k - 1])


def vocabulary(sentences: Sequence[Sentence]) -> dict[str, int]:
    """Return the features that occur often enough, numbered."""
    counts = Counter(name for sentence in sentences for told in features(sentence) for name in told)
    return {name: k for k, name in enumerate(name for name, count in counts.items() if count >= LEAST)}


def encode(sentences: Sequence[Sentence], numbers: dict[str, int]) -> list[sp.csr_array]:
    """Return for every sentence the features of its words: words x features, of ones."""
    return [
        _rows([[numbers[name] for name in told if name in numbers] for told in features(s)], len(numbers))
        for s in sentences
    ]


def _rows(lists: list[list[int]], width: int) -> sp.csr_array:
    start = np.concatenate([[0], np.cumsum([len(each) for each in lists])]).astype(np.int32)
    column = np.array([k for each in lists for k in sorted(each)], dtype=np.int32)
    return sp.csr_array((np.ones(len(column), dtype=np.float32), column, start), shape=(len(lists), width))


def chunks(tags: Sequence[str]) -> set[tuple[int, int, str]]:
    """Return the chunks of a sentence, (first, behind the last, kind), as conlleval finds them.

    A chunk begins at B, and also at I behind O or behind another kind; it ends before the next one or before O.
    """
    found = set()
    first, kind = 0, ""
    for t, tag in enumerate([*tags, "O"]):
        mark, _, now = tag.partition("-")
        if kind and (mark != "I" or now != kind):
            found.add((first, t, kind))
            kind = ""
        if mark != "O" and not kind:
            first, kind = t, now
    return found


def f1(true: Sequence[Sequence[str]], said: Sequence[Sequence[str]]) -> float:
    """Return the harmonic mean of precision and recall of chunks, in percent."""
    pairs = [(chunks(one), chunks(other)) for one, other in zip(true, said, strict=True)]
    right = sum(len(one & other) for one, other in pairs)
    return 200.0 * right / max(1, sum(len(one) + len(other) for one, other in pairs))
