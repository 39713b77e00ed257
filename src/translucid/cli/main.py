"""The entry point: finds the subcommand, and turns errors into one line and an exit code."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Sequence
from functools import cache
from io import TextIOWrapper
from typing import Annotated, Any, get_args

import typer
from rich.text import Text
from typer.core import TyperGroup
from typer.exceptions import TyperException
from typer.main import get_command

from translucid import __version__
from translucid.cli import (
    align,
    caption,
    classify,
    compare,
    data,
    demo,
    draw,
    embed,
    evaluate,
    explain,
    export,
    generate,
    import_model,
    learn,
    look,
    memory,
    models,
    nearest,
    score,
    serve,
    train,
    translate,
    tune,
)
from translucid.cli.environment import apply_environment
from translucid.ground.console import Console, LogFormat
from translucid.ground.errors import UserError
from translucid.ground.interruption import Interrupted, raise_on_sigterm
from translucid.kernels.gpu_memory import is_memory_full
from translucid.kernels.machine import wait_asleep
from translucid.kernels.process import configure_process

SEVERAL = ("FILES", "RULES", "KEY=VALUE")
"""What options are for that take several values: `--train a.tsv b.tsv` is `--train a.tsv --train b.tsv`."""

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES)
"""A full disk, a full quota, a read-only disk, somebody else's folder."""


class _Commands(TyperGroup):
    """All commands; Typer itself would answer each interruption by the exit code of Ctrl-C."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as error:
            raise typer.Exit(_interrupted(error)) from error


app = typer.Typer(
    cls=_Commands,
    name="translucid",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    add_completion=True,
    help="""Translation you can see through: train, run and look inside attention-based translators.

    `translucid demo` needs no input and takes about two minutes.
    """,
    epilog="`translucid COMMAND --help` shows examples. `--debug` before the command shows tracebacks.",
)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"translucid {__version__}")
        raise typer.Exit


@app.callback()
def _main(
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks.")] = False,
    log_format: Annotated[
        LogFormat,
        typer.Option(
            envvar="TRANSLUCID_LOG_FORMAT",
            help="Progress and messages on standard error: lines for people, JSON lines, or errors and warnings only.",
        ),
    ] = "text",
    code: Annotated[
        list[str] | None,
        typer.Option("--code", metavar="FILE", help="Allow this Python file, which a run names, to be executed."),
    ] = None,
    version: Annotated[
        bool, typer.Option("--version", help="Show the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    if code:
        from translucid.models.user_code import allow_code

        allow_code(*code)


PANELS: dict[str, dict[str, Callable[..., None] | typer.Typer]] = {
    "Start": {"demo": demo.demo, "learn": learn.learn},
    "Train": {"train": train.train, "models": models.models, "tune": tune.tune},
    "Translate": {
        "translate": translate.translate,
        "caption": caption.caption,
        "classify": classify.classify,
        "generate": generate.generate,
    },
    "Evaluate": {"evaluate": evaluate.evaluate, "compare": compare.compare, "score": score.score},
    "Inspect": {
        "look": look.look,
        "explain": explain.explain,
        "align": align.align,
        "embed": embed.embed,
        "nearest": nearest.nearest,
        "draw": draw.app,
    },
    "Serve and exchange": {
        "serve": serve.serve,
        "import": import_model.import_model,
        "export": export.export,
    },
    "Data": {"data": data.app, "memory": memory.app},
}
"""The commands under the headings of `translucid --help`."""

for _panel, _commands in PANELS.items():
    for _name, _command in _commands.items():
        if isinstance(_command, typer.Typer):
            app.add_typer(_command, name=_name, rich_help_panel=_panel)
        else:
            app.command(_name, rich_help_panel=_panel)(_command)


@cache  # building it takes a tenth of a second, and a program may call `run` often
def tree() -> TyperGroup:
    """Return all commands, as they parse their arguments."""
    commands = get_command(app)
    assert isinstance(commands, TyperGroup)
    apply_environment(commands)
    return commands


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command and exit: 0 done, 2 the user's input is wrong, 1 our fault, 130 and 143 interrupted."""
    raise_on_sigterm()
    wait_asleep()
    configure_process()
    _hold_closed_streams()
    _write_utf8()
    code = run(list(sys.argv[1:] if arguments is None else arguments))
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        # Threads of gloo may still hold tensors, and would abort an interpreter that is being taken down.
        for stream in (sys.stdout, sys.stderr):
            if stream:
                stream.flush()
        os._exit(code)
    sys.exit(code)


def _hold_closed_streams() -> None:
    """Open what is closed of standard input, output and error to nothing, lest a file get its number and be written to.

    `sys.stdin` and so on stay None.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)


def _write_utf8() -> None:
    """Write UTF-8 into files and pipes, which on Windows would get a code page that lacks most languages."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper) and not stream.isatty():
            stream.reconfigure(encoding="utf-8")


def run(arguments: list[str]) -> int:
    """Run the command; return the exit code."""
    options, texts = _parted(arguments)
    options, format_wanted = without_log_format(options)
    Console.log_format = next(
        (known for known in get_args(LogFormat) if known == (format_wanted or os.environ.get("TRANSLUCID_LOG_FORMAT"))),
        "text",
    )
    debug = "--debug" in options
    begin = ["--debug"] * debug + ([] if format_wanted is None else [f"--log-format={format_wanted}"])
    arguments = begin + [a for a in options if a != "--debug"] + texts
    try:
        if sys.stdout is None:
            raise UserError("standard output is closed", fix="Send it to a file, or to /dev/null.")
        commands = tree()
        spread = several(arguments, commands)
        result = commands(spread, prog_name="translucid", standalone_mode=False, obj=arguments)
        return result if isinstance(result, int) else 0
    except UserError as error:
        if debug:
            raise
        return _refused(str(error))
    except TyperException as error:
        if not error.format_message():  # a group of commands without one: its help is printed already
            return 2
        command = getattr(getattr(error, "ctx", None), "command_path", "translucid")
        return _refused(f"{error.format_message()} See {command} --help.")
    except (KeyboardInterrupt, typer.Abort) as error:
        return _interrupted(error)
    except BrokenPipeError:  # whoever read our output has left, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        if interruption := _cause(error, KeyboardInterrupt):
            return _interrupted(interruption)
        if debug:
            raise
        if is_memory_full(error):
            return _refused("the memory of the GPU is full. Try --device cpu, or a lower --beam where there is one.")
        if isinstance(error, OSError) and error.errno in _NO_ROOM:
            return _refused(f"{error}. Make room, or write elsewhere.")
        problem = f"{type(error).__name__}: {error}".split("\n")[0]
        if os.environ.get("TRANSLUCID_CODE"):
            from translucid.models.user_code import place_in_user_code

            if place := place_in_user_code(error):
                return _refused(f"{place}{problem}. --debug shows the traceback.")
        _say("internal error", f"{problem}. Please report it, with what --debug says.")
        return 1


def _cause(error: BaseException, kind: type[BaseException]) -> BaseException | None:
    """Return what has led to an error: libraries that are interrupted while they are loaded raise one of their own."""
    cause: BaseException | None = error
    while cause and not isinstance(cause, kind):
        cause = cause.__cause__
    return cause


def _interrupted(error: BaseException) -> int:
    Console(stderr=True).print("interrupted")
    return error.exit_code if isinstance(error, Interrupted) else 130


def _refused(why: str) -> int:
    _say("error", why)
    return 2


def _say(kind: str, what: str) -> None:
    Console(stderr=True).print(Text.assemble((f"{kind}:", "red"), f" {what}"), soft_wrap=True)


def _parted(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Part what may be options from what can't be: `--` and all that stands behind it."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    return list(arguments[:end]), list(arguments[end:])


def without_log_format(options: Sequence[str]) -> tuple[list[str], str | None]:
    """Part `--log-format`, which may stand anywhere, from the other options; `serve` has one of its own."""
    rest: list[str] = []
    wanted = None
    coming = iter(options)
    for option in coming:
        name, _, value = option.partition("=")
        command = next((before for before in rest if not before.startswith("-")), "")
        if name == "--log-format" and command != "serve":
            wanted = value or next(coming, "")
        else:
            rest.append(option)
    return rest, wanted


def several(arguments: Sequence[str], commands: TyperGroup) -> list[str]:
    """Repeat an option that takes several values before each of them; `commands` say which options do."""
    options, texts = _parted(arguments)
    names = _take_several(options, commands)
    spread: list[str] = []
    option, values = "", 0
    for argument in options:
        if argument.startswith("-"):
            option, equals, _ = argument.partition("=")
            values = 1 if equals else 0
        elif option in names:
            if values:
                spread.append(option)
            values += 1
        spread.append(argument)
    return spread + texts


def _take_several(options: Sequence[str], commands: TyperGroup) -> set[str]:
    """Return the options with several values that the command has which is called: others have the same names."""
    command: Any = commands
    for argument in options:
        if isinstance(command, TyperGroup) and argument in command.commands:
            command = command.commands[argument]
    several = [option for option in command.params if option.multiple and option.metavar in SEVERAL]
    return {name for option in several for name in option.opts}
