"""The entry point: finds the subcommand, and turns errors into one line and an exit code."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence

import typer
from rich.console import Console
from rich.markup import escape
from typer.exceptions import TyperException

from translucid import __version__
from translucid.cli import (
    align,
    data,
    demo,
    draw,
    evaluate,
    explain,
    export,
    look,
    models,
    serve,
    train,
    translate,
    tune,
)
from translucid.errors import UserError
from translucid.machine import wait_asleep

SEVERAL = ("--train", "--valid", "--test", "--reference", "--pairs", "--check", "--set", "--tsv")
"""Options that take several values: `--train a.tsv b.tsv` is `--train a.tsv --train b.tsv`."""

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES)
"""A full disk, a full quota, a read-only disk, somebody else's folder."""

app = typer.Typer(
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
    debug: bool = typer.Option(False, "--debug", help="Show tracebacks."),
    version: bool = typer.Option(False, "--version", help="Show the version.", callback=_version, is_eager=True),
) -> None:
    pass


app.command("demo")(demo.demo)
app.command("train")(train.train)
app.command("translate")(translate.translate)
app.command("evaluate")(evaluate.evaluate)
app.command("align")(align.align)
app.command("look")(look.look)
app.command("explain")(explain.explain)
app.command("serve")(serve.serve)
app.command("tune")(tune.tune)
app.command("export")(export.export)
app.command("models")(models.models)
app.add_typer(draw.app, name="draw")
app.add_typer(data.app, name="data")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command and exit: 0 done, 2 the user's input is wrong, 1 our fault, 130 interrupted."""
    wait_asleep()
    sys.exit(run(list(sys.argv[1:] if arguments is None else arguments)))


def run(arguments: list[str]) -> int:
    """Run the command; return the exit code."""
    debug = "--debug" in arguments
    arguments = ["--debug"] * debug + [a for a in arguments if a != "--debug"]
    console = Console(stderr=True, highlight=False)
    try:
        result = app(several(arguments), prog_name="translucid", standalone_mode=False, obj=arguments)
        return result if isinstance(result, int) else 0
    except UserError as error:
        if debug:
            raise
        console.print(f"[red]error:[/] {escape(str(error))}", soft_wrap=True)
        return 2
    except TyperException as error:
        command = getattr(getattr(error, "ctx", None), "command_path", "translucid")
        console.print(f"[red]error:[/] {escape(error.format_message())} See {command} --help.", soft_wrap=True)
        return 2
    except (KeyboardInterrupt, typer.Abort):
        console.print("interrupted")
        return 130
    except BrokenPipeError:  # whoever read our output has left, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        if debug:
            raise
        if isinstance(error, OSError) and error.errno in _NO_ROOM:
            console.print(f"[red]error:[/] {escape(str(error))}. Make room, or write elsewhere.", soft_wrap=True)
            return 2
        problem = escape(f"{type(error).__name__}: {error}".split("\n")[0])
        console.print(f"[red]internal error:[/] {problem}. Please report it, with what --debug says.", soft_wrap=True)
        return 1


def several(arguments: Sequence[str]) -> list[str]:
    """Repeat an option that takes several values before each of them."""
    spread: list[str] = []
    option, values = "", 0
    for argument in arguments:
        if argument.startswith("-"):
            option, values = argument, 0
        elif option in SEVERAL:
            if values:
                spread.append(option)
            values += 1
        spread.append(argument)
    return spread
