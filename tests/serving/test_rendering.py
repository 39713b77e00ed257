"""JSON responses written in parts."""

import json

import pytest

from bitext.cancellation import Cancelled, call_between_steps
from translucid.serving.edge import rendering
from translucid.serving.edge.rendering import rendered


@pytest.mark.parametrize(
    "value",
    [
        {},
        [],
        [[]],
        [{}],
        {"a": {}, "b": [], "c": None},
        {"maps": [{"weights": [[0.25, 1.0], [0.5, 0.0]], "name": 'a "b"'}], "translation": "fútbol ⟨1⟩ 足"},
        [1, [2, [3, {"four": [5.5, True, None]}]], "six"],
        "text",
        None,
    ],
)
def test_what_is_written_in_parts_is_what_json_writes_at_once(value):
    response = rendered(value)
    assert response.headers["content-type"] == "application/json"
    assert response.body == json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def test_no_part_is_long_and_it_ends_when_nobody_waits(monkeypatch):
    maps = {"maps": [[[0.5] * 50] * 50] * 20}
    parts, dump = [], rendering._dumped
    monkeypatch.setattr(rendering, "_dumped", lambda value: parts.append(dump(value)) or parts[-1])
    rendered(maps)
    assert len(parts) > 1000 and max(map(len, parts)) < 300

    calls = []

    def ask():
        calls.append(None)
        if len(calls) == 10:
            raise Cancelled

    with pytest.raises(Cancelled), call_between_steps(ask):
        rendered(maps)


def test_what_is_no_number_is_no_json():
    with pytest.raises(ValueError, match="not JSON compliant"):
        rendered({"weights": [[float("nan")]]})
