"""Build the documentation as a site that needs no network: `python docs/site/build.py build/site`.

Pages that are made of the code (commands, settings, modules, source files that pages link to) are made anew each time,
so they can't go stale. Warnings, a dead link or a dead anchor among them, are errors.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE))
TRANSLATOR = "lessons/translator/index.html"
"""The page of the demo's model in the site; it exists if the demo was trained before."""


EMBEDDED = """## Try it here

<p>The model of the demo translates in this page, on your device.
<a href="{page}">Open it on its own page</a>.</p>
<iframe class="translator" src="{page}" title="A translator and its attention" loading="lazy"></iframe>
"""


def stage(staged: Path, *, described: bool = True, demo: bool = False) -> None:
    """Collect all sources of the site in a folder: the Markdown of docs/ and the generated pages.

    Unless modules and source files are `described`, their pages are empty, which is much quicker. `demo`: whether the
    lessons have the translator of the demo, which the first page then embeds.
    """
    import commands
    import modules
    import settings
    import sources

    shutil.copytree(ROOT / "docs", staged, ignore=shutil.ignore_patterns("site", "__pycache__", "*.gif"))
    for name, page in sources.PAGES.items():
        shutil.copy(ROOT / name, staged / page)
    index = (HERE / "index.md").read_text(encoding="utf-8")
    embedded = EMBEDDED.format(page=f"{TRANSLATOR}#text=They+are+going+to+the+beach") if demo else ""
    (staged / "index.md").write_text(index.replace("<!-- try it here -->\n", embedded), encoding="utf-8")
    with (staged / "claims" / "README.md").open("a", encoding="utf-8") as claims:
        claims.write("\n```{toctree}\n:hidden:\n:glob:\n\n*\n```\n")
    page = staged / "lessons.md"
    opened = "<p><a href='lessons/index.html'><b>Open the lessons</b></a> with recorded examples.</p>"
    page.write_text(page.read_text(encoding="utf-8").replace("\n", f"\n\n{opened}\n", 1), encoding="utf-8")
    commands.write(staged)
    settings.write(staged)
    modules.write(staged, described)
    sources.write(staged, described)


def lessons(folder: Path, runs: Path) -> None:
    """Write the lessons, which are a separate site, with the translator of the demo if `runs` has it."""
    from translucid.cli.main import run

    if run(["learn", "--save", str(folder), "--overwrite", "--log-format", "off", "--runs", str(runs)]):
        raise SystemExit("the lessons could not be written")


def build(out: Path, *options: str, described: bool = True, runs: Path = ROOT / "runs") -> int:
    """Build the site into a folder; return the exit code of Sphinx, whose `options` may be given."""
    import links
    from sphinx.cmd.build import main

    work = out.with_name(f"{out.name}-sources")
    for old in (work, out):
        shutil.rmtree(old, ignore_errors=True)
    (work / "more").mkdir(parents=True)
    lessons(work / "more" / "lessons", runs)
    stage(work / "pages", described=described, demo=(work / "more" / TRANSLATOR).is_file())
    arguments = ["-W", "--keep-going", "-q", "-c", str(HERE), "-d", str(work / "doctrees"), *options]
    arguments += ["-D", f"html_extra_path={work / 'more'}", "-b", "html", str(work / "pages"), str(out)]
    if failed := main(arguments):
        return failed
    dead = links.dead(out)
    print(*dead, sep="\n", end="\n" * bool(dead), file=sys.stderr)
    return int(bool(dead))


if __name__ == "__main__":
    sys.exit(build(Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build" / "site").resolve(), *sys.argv[2:]))
