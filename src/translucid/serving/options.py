"""What bounds the server."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ServerOptions:
    """Nobody can ask for more than this."""

    characters: int = 5000
    """In one request, all texts together."""
    texts: int = 200
    """In one request."""
    file_bytes: int = 1_000_000
    """Of an uploaded file, whose text may be longer than `characters`."""
    alternatives: int = 5
    """Of each text; who asks for more gets so many."""
    queue: int = 512
    """Sentences that wait; who comes when it is full is sent away with 503."""
    batch: int = 64
    """Sentences that are translated together."""
    seconds: float = 60.0
    """That a request may take, waiting included."""
    per_minute: int = 0
    """Requests from one address; 0 is no limit."""
    api_keys: frozenset[str] = frozenset()
    """If there are any, a request must carry one."""
