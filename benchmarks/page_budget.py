"""The speed of the page in Chromium, compared with its budget.

    python -m benchmarks.page_budget runs/demo [--visits 5]
    python -m benchmarks.page_budget --web demo-web [--visits 5]

Each visit starts with an empty cache: the script opens the page, types two sentences key by key while the model
translates, and clears the text. The exit code is 1 if a figure exceeds its budget. Needs Chromium and the extra `dev`.

`--web` measures the figure *Pass* of an exported folder instead, as on a phone with a screen of 390 pixels and a
processor that is four times slower. It takes the processor time of each task from a trace and multiplies it by four, so
that other programs on the machine change little. The first picture takes the time of all earlier tasks of the page and
its worker. Tasks in which the page runs the scripts of this measurement do not count.
"""

import argparse
import json
import statistics
import sys
from pathlib import Path

from playwright.sync_api import Browser, expect

from benchmarks.page_server import chromium, served

BUDGET = {
    "first contentful paint, ms": 1000,
    "ready to type into, ms": 1500,
    "bytes before a model answers": 120_000,
    "requests before a model answers": 50,
    "layout shift (CLS)": 0.02,
    "delay of a key while translating, ms": 100,
    "longest task while typing, ms": 100,
}
"""The limits: medians over all visits, but maxima of keys and tasks."""
WORST = ("delay of a key while translating, ms", "longest task while typing, ms")
WEB_BUDGET = {
    "first picture, ms": 3000,
    "complete figure, ms": None,
    "longest task, ms": 50,
    "scrolling, ms per frame": 17,
}
"""The limits for a phone: medians over all visits."""
SLOWDOWN = 4
SENTENCES = "I like soccer and also going to the beach. She sings in the garden."
WATCH = """() => {
  globalThis.seen = { shift: 0, keys: [0], tasks: [0] };
  const watch = (type, see, more = {}) =>
    new PerformanceObserver((list) => list.getEntries().forEach(see)).observe({ type, buffered: true, ...more });
  watch("layout-shift", (one) => { if (!one.hadRecentInput) seen.shift += one.value; });
  watch("event", (one) => { if (one.name === "keydown") seen.keys.push(one.processingStart - one.startTime); },
    { durationThreshold: 16 });
  watch("longtask", (one) => seen.tasks.push(one.duration));
}"""
WATCH_FIGURE = """
  const look = () => {
    const figure = document.querySelector(".pass");
    const isNew = (name) => !performance.getEntriesByName(name).length;
    if (isNew("first") && figure?.querySelector("canvas")) performance.mark("first");
    if (!isNew("first") && figure.ariaBusy !== "true") performance.mark("complete");
    if (isNew("complete")) requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
"""
MEASURING = "blink.mojom.DevToolsSession"
"""The messages by which Playwright runs scripts in the page."""
FRAMES = 60
SCROLL = """async (count) => {
  performance.mark("scroll");
  for (let i = 0; i < count; i += 1) {
    scrollBy(0, 40);
    await new Promise(requestAnimationFrame);
  }
  performance.mark("scrolled");
}"""
LOADED = """() => {
  const entries = [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")];
  return {
    paint: performance.getEntriesByName("first-contentful-paint")[0].startTime,
    ready: performance.now(),
    bytes: entries.reduce((sum, one) => sum + one.transferSize, 0),
    requests: entries.length,
  };
}"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("runs", nargs="*")
    parser.add_argument("--web", type=Path, help="a folder of `translucid export --to web`")
    parser.add_argument("--visits", type=int, default=5)
    arguments = parser.parse_args()
    if arguments.web:
        with chromium() as browser:
            visits = [visit_figure(browser, arguments.web) for _ in range(arguments.visits + 1)][1:]
            sys.exit(report(browser, visits, WEB_BUDGET))
    with served(arguments.runs) as address, chromium() as browser:
        visit(browser, address)  # the model's first answer is slower
        visits = [visit(browser, address) for _ in range(arguments.visits)]
        sys.exit(report(browser, visits, BUDGET))


def report(browser: Browser, visits: list[dict[str, float]], budget: dict[str, float]) -> bool:
    """Print the measurements and their budget; return whether one exceeds it."""
    print(f"Chromium {browser.version}, {len(visits)} visits\n")
    over = False
    print("| | measured | budget |\n| --- | ---: | ---: |")
    for name, most in budget.items():
        values = [visited[name] for visited in visits]
        value = max(values) if name in WORST else statistics.median(values)
        is_over = most is not None and value > most
        over |= is_over
        digits = 3 if most is not None and most < 1 else 0
        print(f"| {name} | {value:,.{digits}f}{' OVER' if is_over else ''} | {'' if most is None else f'{most:,}'} |")
    return over


def visit_figure(browser: Browser, folder: Path) -> dict[str, float]:
    """Return the measurements of one visit of the figure *Pass* of an exported folder."""
    context = browser.new_context(viewport={"width": 390, "height": 800}, device_scale_factor=2)
    page = context.new_page()
    page.add_init_script(WATCH_FIGURE)
    browser.start_tracing(page=page, categories=["toplevel", "mojom", "blink.user_timing"])
    text = SENTENCES.split(".")[0].replace(" ", "+")
    page.goto(f"{(folder / 'index.html').resolve().as_uri()}#text={text}&view=pass", wait_until="commit")
    page.wait_for_function("performance.getEntriesByName('complete').length", timeout=120_000)
    page.evaluate(SCROLL, FRAMES)
    events = json.loads(browser.stop_tracing())["traceEvents"]
    context.close()
    marks = {event["name"]: event for event in events if event["cat"] == "blink.user_timing"}
    threads = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
    ours = [(event["tid"], event["ts"]) for event in events if MEASURING in str(event.get("args"))]
    tasks = [
        (threads[event["tid"]], event["ts"], SLOWDOWN * event["tdur"] / 1000)
        for event in events
        if event["name"] == "ThreadControllerImpl::RunTask"
        and event["pid"] == marks["first"]["pid"]
        and "tdur" in event
        and not any(
            thread == event["tid"] and event["ts"] <= start <= event["ts"] + event["dur"] for thread, start in ours
        )
    ]
    main = [(start, time) for thread, start, time in tasks if thread == "CrRendererMain"]

    def until(mark: str) -> float:
        names = ("CrRendererMain", "DedicatedWorker thread")
        return sum(time for thread, start, time in tasks if thread in names and start < marks[mark]["ts"])

    scrolling = sum(time for start, time in main if marks["scroll"]["ts"] < start < marks["scrolled"]["ts"])
    longest = max(time for _, time in main)
    return dict(zip(WEB_BUDGET, (until("first"), until("complete"), longest, scrolling / FRAMES), strict=True))


def visit(browser: Browser, address: str) -> dict[str, float]:
    """Return the measurements of one visit."""
    context = browser.new_context(viewport={"width": 1200, "height": 800})
    page = context.new_page()
    page.goto(address)
    page.wait_for_selector("body.ready")
    page.evaluate(WATCH)
    loaded = page.evaluate(LOADED)
    page.locator("#source").press_sequentially(SENTENCES, delay=90)
    expect(page.locator("#translation")).not_to_be_empty(timeout=60_000)
    page.wait_for_timeout(1500)
    page.click("#clear")
    page.wait_for_timeout(500)
    observed = page.evaluate("seen")
    context.close()
    figures = (
        *(loaded["paint"], loaded["ready"], loaded["bytes"], loaded["requests"]),
        *(observed["shift"], max(observed["keys"]), max(observed["tasks"])),
    )
    return dict(zip(BUDGET, figures, strict=True))


if __name__ == "__main__":
    main()
