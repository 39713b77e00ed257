"""Text to token ids on all cores, in order, with memory that does not grow with the text."""

from __future__ import annotations

import signal
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from itertools import chain, islice
from multiprocessing import get_context

from translucid.data.corpus import Pair
from translucid.data.encoded import EncodedCorpus
from translucid.data.tokenizer import Tokenizer
from translucid.ground.errors import UserError
from translucid.kernels.machine import cores

CHUNK = 50_000
"""Pairs that are encoded at a time: about a second's work."""
ALONE = 3
"""Chunks that are encoded before other processes would have begun."""


def chunks(pairs: Iterable[Pair]) -> Iterator[list[Pair]]:
    """Cut pairs into lists of `CHUNK`, the last one shorter."""
    iterator = iter(pairs)
    while chunk := list(islice(iterator, CHUNK)):
        yield chunk


def encode_chunks(
    pairs: Iterable[Pair], tokenizer: Tokenizer, max_tokens: int, processes: int | None = None
) -> Iterator[tuple[int, EncodedCorpus]]:
    """Yield how many pairs a chunk had, and those of them that are not too long, encoded; in the order of the pairs.

    Args:
        pairs: the text.
        tokenizer: for both sides.
        max_tokens: see `EncodedCorpus.encode`.
        processes: how many encode; as many as there are cores if not given. This one alone encodes a few chunks. The
            result does not depend on it.

    Raises:
        UserError: one of them was killed.
    """
    coming = chunks(pairs)
    first = list(islice(coming, ALONE + 1))
    processes = processes or cores()
    if len(first) <= ALONE or processes == 1:
        for chunk in chain(first, coming):
            yield len(chunk), EncodedCorpus.encode(chunk, tokenizer, max_tokens=max_tokens)
        return
    # Spawned, not forked: PyTorch's threads do not survive a fork.
    pool = ProcessPoolExecutor(processes, get_context("spawn"), _begin, (tokenizer, max_tokens))
    waiting: deque[tuple[int, Future[EncodedCorpus]]] = deque()
    try:
        for chunk in chain(first, coming):
            waiting.append((len(chunk), pool.submit(_encode, chunk)))
            if len(waiting) > 2 * processes:
                yield _next(waiting)
        while waiting:
            yield _next(waiting)
    except BrokenProcessPool as error:
        fix = "Most often the memory was full: close other programs; --resume goes on."
        raise UserError("a process that encodes the corpus was killed", fix=fix) from error
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _next(waiting: deque[tuple[int, Future[EncodedCorpus]]]) -> tuple[int, EncodedCorpus]:
    count, future = waiting.popleft()
    return count, future.result()


_work: tuple[Tokenizer, int]  # in the processes of the pool


def _begin(tokenizer: Tokenizer, max_tokens: int) -> None:
    global _work
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the first process, which ends the others
    tokenizer.threads = 1
    _work = tokenizer, max_tokens


def _encode(pairs: list[Pair]) -> EncodedCorpus:
    tokenizer, max_tokens = _work
    return EncodedCorpus.encode(pairs, tokenizer, max_tokens=max_tokens)
