"""The turns of a caption: the words of each speaker, descriptions of sounds, and the lines of a song.

Dashes, `>>`, music notes and the brackets of a sound are not part of the text to translate.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from itertools import pairwise
from typing import Literal, NamedTuple

Kind = Literal["speech", "sound", "song"]

_DRAWING = (
    r"\{[^{}\r\n]*\\p[1-9][^{}\r\n]*\}"
    r"[^{]*+(?:\{(?![^{}\r\n]*\\p0)[^{]*+)*(?:\{[^{}\r\n]*\\p0[^{}\r\n]*\})?"
)
"""A drawing of SubStation Alpha between `{\\p1}` and `{\\p0}`."""
TAG = re.compile(
    rf"{_DRAWING}"
    r"|<rt\b[^<>\r\n]*>[^<\r\n]*</rt>"  # the pronunciation of a word
    r"|<(?P<close>/?)(?P<name>i|b|u|s|font|v|c|lang|ruby|rt)\b[^<>\r\n]*>|<\d[\d:.]*>|\{\\[^{}\r\n]*\}"
    r"|\{(?P<ends>/?)(?P<sign>[ibus])\}|&(?:lrm|rlm);|[\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)
"""Tags of WebVTT, SubRip, SubStation Alpha and MicroDVD, drawings, and controls of writing direction."""
CODED_SPACE = re.compile(r"(?<![:\\])\\(?:(?P<line>N)|h)")
"""A line end or a space as SubStation Alpha writes it."""
MUSIC = "♪♫♩♬"
_SPEAKER = r"(?:[-‐‑‒–—―−]{1,2}|>{2,3}|(?:&gt;){2,3})"
SPEAKER = re.compile(_SPEAKER)
"""The sign before the words of another speaker: a dash, or `>>` in American captions."""
_HIDDEN = r"[\s\0]*"
_TURN = re.compile(rf"{_HIDDEN}(?P<speaker>{_SPEAKER}){_HIDDEN}")
_TURN_INSIDE = re.compile(rf"(?<=[.!?…\"”’»])[ \0]+(?={_SPEAKER}{_HIDDEN}(?P<first>[^\s\0]))")
_LINE = re.compile(r"[^\r\n]+")
_MUSIC = re.compile(rf"[{MUSIC}]+|(?<![^\s\0])#(?![^\s\0])")
_OPENING = re.compile(r"[\[(]")
_SOUND = r"(\[[^\[\]]*\]|\([^()]*\))"
_FIRST_SOUND = re.compile(rf"{_HIDDEN}(?:{_SPEAKER}{_HIDDEN})?{_SOUND}")
_NEXT_SOUND = re.compile(rf"[ \t\0]*{_SOUND}")
_NEXT_CHARACTER = re.compile(r"[ \t\0]*([^\r\n]?)")
_ENDS, _CLOSING = tuple(".!?…。！？♪♫:"), "\"'”’»)]"
"""The characters that end a sentence, and those that may follow them; a bracket ends a sentence too."""


class Turn(NamedTuple):
    """A part of a caption that is translated separately."""

    start: int
    """The start in the text of the caption."""
    end: int
    kind: Kind
    speaker: bool
    """Whether it begins with the sign of another speaker."""
    signs: tuple[tuple[int, int], ...]
    """The spans of dashes, music notes and brackets, which are not translated."""


class _Line(NamedTuple):
    start: int
    end: int
    text: str
    """The text without tags and the white space around it."""


def turns(text: str) -> Iterator[Turn]:
    """Yield the turns of a caption, which together cover its text."""
    # Tags are overwritten, not removed, so that all offsets stay the same.
    plain = TAG.sub(lambda match: "\0" * len(match[0]), text)
    plain = CODED_SPACE.sub(lambda match: "\0\n" if match["line"] else "\0 ", plain)
    lines: list[_Line] = []
    for match in _LINE.finditer(plain):
        if content := match[0].replace("\0", "").strip():
            lines.append(_Line(*match.span(), content))
    if not lines:
        return
    songs = list(_songs(lines))
    sounds = dict(_sounds(plain, lines))
    starts = {0, *sounds, *sounds.values(), *_speaker_starts(plain, lines)}
    starts.update(map(re.Match.start, re.finditer(r"<v[ .]", text)))
    for (before_is_song, is_song), line in zip(pairwise(songs), lines[1:], strict=True):
        if before_is_song or is_song:
            starts.add(line.start)
    line_starts = [line.start for line in lines]
    for start, end in pairwise([*sorted(starts), len(text)]):
        kind: Kind = "speech"
        if start in sounds:
            kind = "sound"
        elif songs[max(0, bisect_right(line_starts, start) - 1)]:
            kind = "song"
        if speaker := _TURN.match(plain, start, end):
            yield Turn(start, end, kind, True, (speaker.span("speaker"), *_signs(plain, speaker.end(), end, kind)))
        else:
            yield Turn(start, end, kind, False, tuple(_signs(plain, start, end, kind)))


def ends_sentence(text: str) -> bool:
    """Whether a text ends with the end of a sentence."""
    text = text.rstrip()
    core = text.rstrip(_CLOSING)
    return core.endswith(_ENDS) or not set(")]").isdisjoint(text[len(core) :])


def _speaker_starts(plain: str, lines: list[_Line]) -> set[int]:
    """Return the offsets at which another speaker begins: a line with a dash, or a dash after a sentence."""
    starts = set()
    is_dialogue = bool(SPEAKER.match(lines[0].text))
    for before, line in pairwise(lines):
        turn = _TURN.match(plain, line.start, line.end)
        # A dash before a lower-case letter within a sentence belongs to the sentence.
        if turn and (is_dialogue or ends_sentence(before.text) or not plain[turn.end() : turn.end() + 1].islower()):
            starts.add(line.start)
    if is_dialogue:
        starts.update(match.end() for match in _TURN_INSIDE.finditer(plain) if not match["first"].islower())
    return starts


def _songs(lines: list[_Line]) -> Iterator[bool]:
    """Yield for each line whether it belongs to a song, which begins with a music note and ends after another."""
    singing = False
    for line in lines:
        is_between_hashes = len(line.text) > 4 and line.text.startswith("# ") and line.text.endswith(" #")
        ends = is_between_hashes or line.text[-1] in MUSIC
        is_song = singing or ends or line.text[0] in MUSIC
        yield is_song
        singing = is_song and not ends


def _sounds(plain: str, lines: list[_Line]) -> Iterator[tuple[int, int]]:
    """Yield the spans of bracketed sounds and speakers: at the beginning of a line, or after a sentence at its end.

    A sound may span several lines. It includes the sign of its speaker, and more sounds may follow directly.
    """
    for line in lines:
        start = line.start
        sound = _FIRST_SOUND.match(plain, start)
        while sound and any(map(str.isalpha, sound[1])):
            next_character = _NEXT_CHARACTER.match(plain, sound.end())
            if sound[1][0] == "(" and next_character and next_character[1].islower():
                break  # Round brackets occur in sentences too.
            yield start, sound.end()
            start = sound.end()
            sound = _NEXT_SOUND.match(plain, start)
        if line.text[-1] not in ")]":
            continue
        opening = plain.rfind("[" if line.text[-1] == "]" else "(", start, line.end)
        if opening > start and ends_sentence(plain[start:opening].rstrip(" \t\0")):
            yield opening, line.end


def _signs(plain: str, start: int, end: int, kind: Kind) -> Iterator[tuple[int, int]]:
    """Yield the spans of the brackets around a sound, or of the music notes and hash signs of a song."""
    if kind == "song":
        yield from map(re.Match.span, _MUSIC.finditer(plain, start, end))
    elif kind == "sound":
        opening = _OPENING.search(plain, start, end)
        closing = max(plain.rfind("]", start, end), plain.rfind(")", start, end))
        if opening and closing > opening.start():
            yield opening.span()
            yield closing, closing + 1
