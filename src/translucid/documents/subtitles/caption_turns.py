"""The turns of a caption: what each speaker says, descriptions of sounds, and the lines of a song.

Dashes, `>>`, notes of music and the brackets of a sound stay outside of what is translated.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from itertools import pairwise
from typing import Literal, NamedTuple

Kind = Literal["speech", "sound", "song"]

TAG = re.compile(
    r"<rt\b[^<>\r\n]*>[^<\r\n]*</rt>"  # how a word is read
    r"|<(?P<close>/?)(?P<name>i|b|u|s|font|v|c|lang|ruby|rt)\b[^<>\r\n]*>|<\d[\d:.]*>|\{\\[^{}\r\n]*\}"
    r"|\{(?P<ends>/?)(?P<sign>[ibus])\}|&(?:lrm|rlm);|[\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)
"""Tags of WebVTT, SubRip, SubStation Alpha and MicroDVD, and signs of the direction of text."""
MUSIC = "♪♫♩♬"
_SPEAKER = r"(?:[-‐‑‒–—―−]{1,2}|>{2,3}|(?:&gt;){2,3})"
SPEAKER = re.compile(_SPEAKER)
"""What stands before the words of another speaker: a dash, or `>>` in American captions."""
_HIDDEN = r"[\s\0]*"
_TURN = re.compile(rf"{_HIDDEN}(?P<speaker>{_SPEAKER}){_HIDDEN}")
_TURN_INSIDE = re.compile(rf"(?<=[.!?…\"”’»])[ \0]+(?={_SPEAKER}{_HIDDEN}(?P<first>[^\s\0]))")
_LINE = re.compile(r"[^\r\n]+")
_MUSIC = re.compile(rf"[{MUSIC}]+|(?<![^\s\0])#(?![^\s\0])")
_OPENING = re.compile(r"[\[(]")
_SOUND = r"(\[[^\[\]]*\]|\([^()]*\))"
_FIRST_SOUND = re.compile(rf"{_HIDDEN}(?:{_SPEAKER}{_HIDDEN})?{_SOUND}")
_NEXT_SOUND = re.compile(rf"[ \t\0]*{_SOUND}")
_BEHIND = re.compile(r"[ \t\0]*([^\r\n]?)")
_ENDS, _CLOSING = tuple(".!?…。！？♪♫:"), "\"'”’»)]"
"""Characters that end a sentence, and those that may stand behind them; a bracket ends one too."""


class Turn(NamedTuple):
    """A part of a caption that is translated by itself."""

    start: int
    """In the text of the caption."""
    end: int
    kind: Kind
    speaker: bool
    """Whether it begins with the sign of another speaker."""
    signs: tuple[tuple[int, int], ...]
    """Where dashes, notes of music and brackets stand that are not translated."""


class _Line(NamedTuple):
    start: int
    end: int
    text: str
    """Without tags and the white space around it."""


def turns(text: str) -> Iterator[Turn]:
    """Yield the turns of a caption, in order; together they are all of its text."""
    # Tags are hidden, not taken out, so that all places stay what they are.
    plain = TAG.sub(lambda match: "\0" * len(match[0]), text)
    lines = [_Line(*match.span(), match[0].replace("\0", "").strip()) for match in _LINE.finditer(plain)]
    lines = [line for line in lines if line.text]
    if not lines:
        return
    songs = list(_songs(lines))
    sounds = dict(_sounds(plain, lines))
    cuts = {0, *sounds, *sounds.values(), *_speaker_starts(plain, lines)}
    cuts |= {match.start() for match in re.finditer(r"<v[ .]", text)}
    cuts |= {line.start for i, line in enumerate(lines) if i and (songs[i] or songs[i - 1])}
    starts = sorted(cuts)
    line_starts = [line.start for line in lines]
    for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
        kind: Kind = "speech"
        if start in sounds:
            kind = "sound"
        elif songs[max(0, bisect_right(line_starts, start) - 1)]:
            kind = "song"
        speaker = _TURN.match(plain, start, end)
        signs = _signs(plain, speaker.end() if speaker else start, end, kind)
        yield Turn(start, end, kind, bool(speaker), (*([speaker.span("speaker")] if speaker else []), *signs))


def ends_sentence(text: str) -> bool:
    """Whether a sentence ends with a text."""
    text = text.rstrip()
    core = text.rstrip(_CLOSING)
    return core.endswith(_ENDS) or any(bracket in text[len(core) :] for bracket in ")]")


def _speaker_starts(plain: str, lines: list[_Line]) -> set[int]:
    """Return where another speaker begins: at a line with a dash, or at a dash behind a sentence."""
    starts = set()
    dialogue = bool(lines) and bool(SPEAKER.match(lines[0].text))
    for before, line in pairwise(lines):
        turn = _TURN.match(plain, line.start, line.end)
        # A dash before a small letter, amid a sentence, is a dash of the sentence.
        if turn and (dialogue or ends_sentence(before.text) or not plain[turn.end() : turn.end() + 1].islower()):
            starts.add(line.start)
    if dialogue:
        starts |= {match.end() for match in _TURN_INSIDE.finditer(plain) if not match["first"].islower()}
    return starts


def _songs(lines: list[_Line]) -> Iterator[bool]:
    """Say of each line whether it is of a song: from a note of music on, up to a line that ends with one."""
    singing = False
    for line in lines:
        hashes = len(line.text) > 4 and line.text.startswith("# ") and line.text.endswith(" #")
        ends = hashes or line.text[-1] in MUSIC
        sung = singing or ends or line.text[0] in MUSIC
        yield sung
        singing = sung and not ends


def _sounds(plain: str, lines: list[_Line]) -> Iterator[tuple[int, int]]:
    """Yield where brackets describe a sound or a speaker: at the beginning of a line, or behind a sentence at its end.

    A sound may go on over lines. It begins with the sign of its speaker, and the next begins behind it.
    """
    for line in lines:
        at = line.start
        sound = _FIRST_SOUND.match(plain, at)
        while sound and any(map(str.isalpha, sound[1])):
            behind = _BEHIND.match(plain, sound.end())
            if sound[1][0] == "(" and behind and behind[1].islower():
                break  # round brackets stand in sentences, too
            yield at, sound.end()
            at = sound.end()
            sound = _NEXT_SOUND.match(plain, at)
        opening = plain.rfind("[" if line.text[-1] == "]" else "(", at, line.end) if line.text[-1] in ")]" else -1
        if opening > at and ends_sentence(plain[at:opening].rstrip(" \t\0")):
            yield opening, line.end


def _signs(plain: str, start: int, end: int, kind: Kind) -> Iterator[tuple[int, int]]:
    """Yield the brackets around a sound, and the notes of music or hash signs of a song."""
    if kind == "song":
        yield from (match.span() for match in _MUSIC.finditer(plain, start, end))
    elif kind == "sound":
        opening = _OPENING.search(plain, start, end)
        closing = max(plain.rfind("]", start, end), plain.rfind(")", start, end))
        if opening and closing > opening.start():
            yield opening.span()
            yield closing, closing + 1
