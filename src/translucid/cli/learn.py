"""`translucid learn`."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from translucid.cli import option
from translucid.ground.atomic import atomic_folder, export_folder, refuse_overwrite
from translucid.ground.console import Console
from translucid.ground.errors import UserError
from translucid.lessons.lessons import LESSONS

if TYPE_CHECKING:
    from translucid.lessons.runs import Models


def learn(
    runs: Annotated[Path, Option(metavar="FOLDER", help="The folder of the lessons' models.")] = Path("runs"),
    train: Annotated[bool, Option("--train", help="Train missing models: about fifteen minutes for all.")] = False,
    save: Annotated[Path | None, Option(metavar="FOLDER", help="Save the pages instead of serving them.")] = None,
    exercises: Annotated[
        Path | None, Option(metavar="FOLDER", help="Write a notebook for each lesson with a function to write.")
    ] = None,
    language: Annotated[
        str, Option(metavar="CODE", help="The language of the notebooks: en, de, es or fr. Pages have a menu.")
    ] = "en",
    overwrite: option.Overwrite = False,
    port: Annotated[int, Option(min=1, max=65535, help="The port, on this machine alone.")] = 5000,
    show: Annotated[bool, Option("--open", help="Open the lessons in the browser.")] = False,
) -> None:
    """Sixteen short interactive lessons about attention and the layers of a model.

    The figures show numbers from small translators. A lesson whose models exist is live: it accepts your own sentences.
    --train trains the models, and `translucid demo` the one of lessons 3 to 12 and 14 to 16, of which 15 and 16 also
    need a dictionary of features (`translucid features`). The others show recordings. If the demo's model exists, some
    of the saved pages embed a translator that runs in the browser.

    **Examples**

        translucid learn --open

        translucid learn --train --open

        translucid learn --save lessons

        translucid learn --exercises exercises

        translucid learn --exercises ejercicios --language es
    """
    from translucid.lessons.runs import Models

    console, models = Console(stderr=True), Models(runs)
    if exercises:
        _write_exercises(exercises, language, overwrite, console)
        return
    if save:
        refuse_overwrite(save, overwrite, "lessons.js", "a folder of lessons")
    if train:
        models.load()
    recorded_lessons: dict[str, list[str]] = {}  # by the command that makes what they need
    for number, lesson in enumerate(LESSONS, 1):
        if not models.has(lesson):
            command = lesson.command if models.has_runs(lesson) else "translucid learn --train --runs {runs}"
            recorded_lessons.setdefault(command.format(runs=runs), []).append(str(number))
    has_live_lessons = sum(map(len, recorded_lessons.values())) < len(LESSONS)
    for command, numbers in recorded_lessons.items():
        subject = f"Lessons {', '.join(numbers)} show" if has_live_lessons else "The lessons show"
        console.print(f"{subject} what was recorded. For sentences of your own: {command}", soft_wrap=True)
    if save:
        from translucid.lessons.pages import save_pages
        from translucid.lessons.recording import record_of

        records = {lesson.name: record_of(models, lesson) for lesson in LESSONS}
        with atomic_folder(save) as folder:
            _export_demo(models, folder, console)
            save_pages(folder, records)
        console.print(f"the lessons are in {save}: open {save / 'index.html'}", soft_wrap=True)
    elif has_live_lessons:
        _live(models, port, show, console)
    else:
        _recorded(port, show, console)


def _write_exercises(folder: Path, language: str, overwrite: bool, console: Console) -> None:
    from translucid.lessons.exercise_notebooks import MARKER, write_exercises

    with export_folder(folder, overwrite, *MARKER) as temporary:
        write_exercises(temporary, language)
    console.print(f"the exercises are in {folder}: jupyter lab {folder}", soft_wrap=True)


def _export_demo(models: Models, folder: Path, console: Console) -> None:
    """Write the web page of the demo's model beside the lessons, if the model exists and runs in a browser."""
    from translucid.cli.export import refuse_edited, write_web_page
    from translucid.lessons.pages import DEMO_PAGE

    if "demo" not in models.trained():
        return
    run = models.runs / "demo"
    try:
        refuse_edited(models.demo.torch_engine, models.demo.tokenizer, run)
        write_web_page(models.demo, run, folder / DEMO_PAGE)
    except UserError as error:
        console.print(f"the pages embed no translator: {error}", soft_wrap=True)


def _recorded(port: int, show: bool, console: Console) -> None:
    from translucid.lessons.serving import recorded_server

    with recorded_server(port) as server:
        _announce(port, show, console)
        server.serve_forever()


def _live(models: Models, port: int, show: bool, console: Console) -> None:
    import uvicorn

    from translucid.cli.serve import bound
    from translucid.lessons.live import Live
    from translucid.serving.app import create_app
    from translucid.serving.catalog import load
    from translucid.serving.edge.connections import Connection, Listening
    from translucid.serving.server_options import ServerOptions

    # The port is taken before models are loaded.
    with bound("127.0.0.1", port) as listener:
        options = ServerOptions()
        run_folders = [str(models.runs / name) for name in models.trained()]
        app = create_app(
            load(run_folders, "cpu", options), options, lessons=lambda context: Live(models, context).routes()
        )
        listener.listen(128)
        _announce(port, show, console)
        Listening(uvicorn.Config(app, http=Connection, ws="none", log_level="error", access_log=False)).run(
            sockets=[listener]
        )


def _announce(port: int, show: bool, console: Console) -> None:
    url = f"http://127.0.0.1:{port}/lessons/"
    console.print(f"lessons on {url}; Ctrl-C ends it", soft_wrap=True)
    if show:
        webbrowser.open(url)
