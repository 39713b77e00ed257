"""The scripts and styles of the page and of its figure *Pass*, which the server's page has, too; without PyTorch."""

from pathlib import Path

PAGE = Path(__file__).parent
ENGINE = ("layers.js", "transformer.js", "bahdanau.js", "tokenizer.js", "search.js", "translator.js", "worker.js")
"""The scripts that tokenize, compute and search, in the order in which a page loads them."""
_FIGURE = ("engine_client.js", "pass.js", "pass_box.js", "pass_boxes.js", "pass.css")


def figure_files() -> dict[str, str]:
    """Return the texts of the files of *Pass* by their names, among them the worker in which the engine computes."""
    engine = "".join((PAGE / "engine" / script).read_text(encoding="utf-8") for script in ENGINE)
    texts = {name: (PAGE / name).read_text(encoding="utf-8") for name in _FIGURE}
    return texts | {"pass_engine.js": f"{engine}answerMessages();\n"}
