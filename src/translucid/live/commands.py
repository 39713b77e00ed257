"""`translucid live`.

**Examples**

    echo "I like soccer and also going to the beach." | translucid live runs/demo

    tail -f captions.txt | translucid live runs/es --policy alignatt --lag 3

    translucid live runs/es --input talk.vtt --play --format vtt > talk.es.vtt

    translucid live runs/es --format jsonl --policy wait-k < sentences.txt
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterable
from io import BufferedIOBase
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, cast

from typer import Option

from translucid.cli import option
from translucid.cli.arguments import input_bytes, refuse_unreadable
from translucid.cli.printing import with_examples
from translucid.cli.run_kinds import steps_of
from translucid.ground.console import Console
from translucid.ground.errors import UserError
from translucid.live.kinds import PolicyName

if TYPE_CHECKING:
    from bitext.documents.subtitles.cue_maker import Cue
    from translucid.live.input import Heard
    from translucid.live.sentence import LiveSentence
    from translucid.live.session import LiveSession, PivotSession


class Input(NamedTuple):
    """Input."""

    input_file: Annotated[
        Path | None, Option("--input", help="Text, or subtitles (.vtt, .srt) with their times; - is stdin.")
    ] = None
    lines: Annotated[
        Literal["sentences", "whole"],
        Option(help="Running text, whose sentences are found, or a sentence on each line."),
    ] = "sentences"
    play: Annotated[bool, Option("--play", help="Read each word at its time, as if it were spoken now.")] = False


class Decisions(NamedTuple):
    """Decisions."""

    policy: Annotated[PolicyName, Option(help="When to write.")] = "alignatt"
    lag: Annotated[int, Option(help="How far to stay behind, in source words.", min=0, max=1000)] = 2
    alpha: Annotated[
        float | None,
        Option(
            help="With edatt: the attention on the last words from which it waits; chosen for the run.", min=0, max=1
        ),
    ] = None
    attention: Annotated[
        str | None, Option(metavar="NAME", help="What is read, such as decoder.1.cross or decoder.1.cross.head.3.")
    ] = None
    beam: Annotated[int, Option(help="The beam width; 1 is greedy search.", min=1, max=100)] = 1
    max_words: Annotated[int, Option(help="End a sentence that has no end after this many words.", min=1)] = 80


class Output(NamedTuple):
    """Output."""

    output_format: Annotated[
        Literal["text", "jsonl", "vtt", "srt"],
        Option("--format", help="Words; JSON lines with times, delays and attention; or subtitles."),
    ] = "text"
    line_length: Annotated[int | None, Option(help="Subtitles: the most characters of a line.", min=10)] = None
    reading_speed: Annotated[float | None, Option(help="Subtitles: characters read per second.", min=1)] = None
    formality: option.Formality = None

    @property
    def limits(self) -> dict[str, Any]:
        """The limits of subtitles that are given, by the names of `CueLimits`."""
        limits = {"line_length": self.line_length, "reading_speed": self.reading_speed}
        return {name: value for name, value in limits.items() if value is not None}


class Models(NamedTuple):
    """Models."""

    pivot: option.Pivot = None
    ensemble: option.Ensemble = None
    device: option.Device = "auto"


@with_examples(__doc__)
def live(
    run: option.Run,
    *,
    source: Input,
    decisions: Decisions,
    output: Output,
    languages: option.Languages,
    models: Models,
    interventions: option.Interventions,
    terms: option.Terms,
) -> None:
    """Translate text while it arrives on standard input; what is written never changes.

    Words, characters or lines are read as they come, and target words are written as soon as the policy allows. A line
    may begin with its time in seconds and a tab. A line feed is a space; a blank line ends the sentence. Ctrl-C writes
    what is left.

    alignatt writes a piece unless it looks most at the last --lag words; edatt, unless its attention on them is --alpha
    or more. wait-k stays --lag words behind; agreement writes what --lag + 1 successive translations have in common;
    whole waits for the end of the sentence (docs/live.md).
    """
    from translucid.jobs.job import TranslationJob, open_translator
    from translucid.live.input import SUBTITLES, TextStream, played, subtitle_words

    if output.output_format in ("text", "jsonl") and output.limits:
        raise UserError("--line-length and --reading-speed are for subtitles", fix="Add --format vtt or srt.")
    if decisions.alpha is not None and decisions.policy != "edatt":
        raise UserError("--alpha is for --policy edatt", fix="Leave it out.")
    first_step, configuration = steps_of(run, models.pivot, languages)
    configuration.refuse_other_input("text", run)
    job = TranslationJob(
        run,
        configuration.decoding,
        device=models.device,
        engine="torch",
        configuration=configuration,
        first_step=first_step,
        interventions=interventions.values,
        others=tuple(models.ensemble or ()),
        formality=output.formality,
        terms=terms.terms,
        inflect_terms=terms.inflect,
        terms_mode=terms.mode,
        domain=terms.domain,
    )
    translator: Any = open_translator(job, None, 1)
    options = {name: value for name, value in decisions._asdict().items() if value is not None}
    session = translator.live(**options, split=source.lines == "sentences")
    start = time.monotonic()

    def clock() -> float:
        return time.monotonic() - start

    file, stream = source.input_file, None
    if file is not None and file.name.lower().endswith(SUBTITLES):
        parts: Iterable[Heard] = subtitle_words(file)
    else:
        parts = stream = TextStream(cast(BufferedIOBase, input_bytes(file)), lines_end=source.lines == "whole")
    if source.play:
        parts = played(iter(parts), clock)
    writer = _writer(output, session)
    _translate(session, parts, writer, clock)
    if stream is not None:
        effect = "; their unreadable bytes were read as �"
        for number in stream.unreadable[:3]:
            Console(stderr=True).print(f"line {number}: not UTF-8", soft_wrap=True)
        refuse_unreadable(len(stream.unreadable), effect, file)


def _translate(
    session: LiveSession | PivotSession, parts: Iterable[Heard], writer: Writer, clock: Callable[[], float]
) -> None:
    """Read parts of a text, and write its translation as it grows; an interruption writes the rest."""
    log, seconds = Console(stderr=True), None

    def write(text: str) -> None:
        if text:
            writer.write(text, clock() if seconds is None else seconds)
        for message in session.messages:
            log.print(f"warning: {message}", soft_wrap=True)
        for sentence in session.sentences:
            if sentence.ended:
                writer.end_sentence(sentence)
        session.forget()  # the text may be one of hours

    def end() -> None:
        write(session.finish())
        writer.end_paragraph()

    try:
        for part in parts:
            seconds = part.seconds
            for character in part.text:  # one character completes one word at most
                write(session.read(character))
            if part.ends:
                end()
        end()
    except KeyboardInterrupt:
        end()
        raise
    finally:
        writer.close()


class Writer:
    """Appends the words to standard output."""

    def __init__(self, session: LiveSession | PivotSession) -> None:
        """Write what a session says."""
        self.session = session
        self._line_begun = False

    def write(self, text: str, seconds: float) -> None:
        """Append a text that was written at a time."""
        self._print(text if self._line_begun else text.lstrip())
        self._line_begun = True

    def end_sentence(self, sentence: LiveSentence) -> None:
        """Write what there is to say of a sentence that has ended."""

    def end_paragraph(self) -> None:
        """End the line, if one has begun."""
        if self._line_begun:
            self._print("\n")
        self._line_begun = False

    def close(self) -> None:
        """Write what is left."""

    def _print(self, text: str) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()


class JsonWriter(Writer):
    """Writes a JSON object for each text that is written, and for each sentence that has ended."""

    def write(self, text: str, seconds: float) -> None:
        """Write a line with the text, its time, and the number of source words heard."""
        self._line({"text": text, "seconds": round(seconds, 3), "heard": self.session.heard})

    def end_sentence(self, sentence: LiveSentence) -> None:
        """Write a line with the sentence and all decisions."""
        self._line({"sentence": sentence.to_json()})

    def end_paragraph(self) -> None:
        """Nothing: each object is a line of its own."""

    def _line(self, values: dict[str, Any]) -> None:
        self._print(json.dumps(values, ensure_ascii=False) + "\n")


class SubtitleWriter(Writer):
    """Writes cues as soon as they are complete."""

    def __init__(self, session: LiveSession | PivotSession, limits: dict[str, Any], *, web: bool) -> None:
        """Begin a file of WebVTT, or of SubRip, with limits by the names of `CueLimits`."""
        from bitext.documents.subtitles.cue_maker import CueMaker, header
        from bitext.documents.subtitles.cues import CueLimits

        super().__init__(session)
        self._maker = CueMaker(CueLimits(**limits))
        self._web, self._count = web, 0
        self._print(header(web=web))

    def write(self, text: str, seconds: float) -> None:
        """Continue the text."""
        self._cues(self._maker.add(seconds, text))

    def end_paragraph(self) -> None:
        """Nothing: the times decide where a cue ends."""

    def close(self) -> None:
        """Write the last cue."""
        self._cues(self._maker.finish())

    def _cues(self, cues: Iterable[Cue]) -> None:
        from bitext.documents.subtitles.cue_maker import cue_text

        for cue in cues:
            self._count += 1
            self._print(cue_text(cue, self._count, web=self._web))


def _writer(output: Output, session: LiveSession | PivotSession) -> Writer:
    match output.output_format:
        case "jsonl":
            return JsonWriter(session)
        case "vtt" | "srt":
            return SubtitleWriter(session, output.limits, web=output.output_format == "vtt")
    return Writer(session)
