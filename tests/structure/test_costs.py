"""The recorded costs of tests belong to existing files."""

from tests.costs import missing


def test_each_file_exists():
    assert missing() == [], "tests/costs.py"
