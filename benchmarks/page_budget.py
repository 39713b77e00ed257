"""The speed of the page in Chromium, compared with its budget.

    python -m benchmarks.page_budget runs/demo [--visits 5]

Each visit starts with an empty cache: the script opens the page, types two sentences key by key while the model
translates, and clears the text. The exit code is 1 if a figure exceeds its budget. Needs Chromium and the extra `dev`.
"""

import argparse
import statistics
import sys

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
    parser.add_argument("runs", nargs="+")
    parser.add_argument("--visits", type=int, default=5)
    arguments = parser.parse_args()
    with served(arguments.runs) as address, chromium() as browser:
        visit(browser, address)  # the model's first answer is slower
        visits = [visit(browser, address) for _ in range(arguments.visits)]
        print(f"Chromium {browser.version}, {arguments.visits} visits\n")
    over = False
    print("| | measured | budget |\n| --- | ---: | ---: |")
    for name, most in BUDGET.items():
        values = [visited[name] for visited in visits]
        value = max(values) if name in WORST else statistics.median(values)
        over |= value > most
        print(f"| {name} | {value:,.{3 if most < 1 else 0}f}{' OVER' if value > most else ''} | {most:,} |")
    sys.exit(over)


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
