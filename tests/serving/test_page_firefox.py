"""The page works in Firefox as in Chromium."""

from .test_clients import address  # noqa: F401


def test_typing_copying_swapping_and_dialogs(firefox, address):  # noqa: F811
    firefox.open(address)
    firefox.ask("browsingContext.activate", context=firefox.tab)
    firefox.wait("document.body.classList.contains('ready')")
    firefox.run("() => document.querySelector('#source').focus()")
    firefox.type("I like soccer")
    translation = firefox.wait("document.querySelector('#translation').textContent")
    assert translation
    firefox.wait("!document.querySelector('#inspection').hidden && document.querySelector('#inspection .word') && true")
    firefox.wait("document.querySelector('#inspection').textContent.includes('soccer')")  # the translation of all of it
    heights = firefox.run(
        "() => [...document.querySelectorAll('.pane')].slice(0, 2).map((one) => one.offsetHeight).join()"
    )
    first, second = str(heights).split(",")
    assert first == second
    firefox.click("#open-history")
    assert firefox.wait("document.querySelector('#history-list button')?.textContent.includes('I like soccer')")
    firefox.type("\ue00c")  # Escape
    assert firefox.run("() => document.activeElement.id") == "open-history"
    firefox.type("?")
    assert firefox.wait("document.querySelector('#shortcuts-dialog').open")
    firefox.type("\ue00c")
    firefox.ask("browsingContext.reload", context=firefox.tab, wait="complete")
    assert firefox.wait("document.querySelector('#translation').textContent") == translation
    assert firefox.errors == []
