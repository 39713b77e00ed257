"""What is known of the costs of tests is of files that exist."""

from tests.costs import missing


def test_each_file_exists():
    assert missing() == [], "tests/costs.py"
