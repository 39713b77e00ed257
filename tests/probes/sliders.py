"""Moving the sliders of a page in Chromium."""


def slide(page, label, value):
    page.get_by_label(label, exact=True).evaluate(
        "(input, value) => { input.value = value; input.dispatchEvent(new Event('input', { bubbles: true })); }", value
    )
