"""Error messages are one line of printable text."""

from translucid.ground.errors import UserError, nearest


def test_line_breaks_and_control_characters_are_escaped():
    message = str(UserError("no key 'a\nb\x1b[2J\u2028\u202e\ud800ñ'", file="x\r.tsv", line=3))
    assert message == "x\\r.tsv:3: no key 'a\\nb\\x1b[2J\\u2028\\u202e\\ud800ñ'."
    assert message.encode() and message.isprintable()


def test_the_middle_of_a_long_message_is_left_out():
    message = str(UserError("x" * 10_000_000, file="a.tsv", fix="Do this."))
    assert len(message) < 2100
    assert message.startswith("a.tsv: xxx") and message.endswith("xxx. Do this.")


def test_the_nearest_of_anything_is_found_at_once():
    assert nearest(5, ["a"]) == nearest("x" * 10_000_000, ["a"]) == "Known: a."
