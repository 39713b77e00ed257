"""Statuses and messages of errors, depending on who caused them."""

import errno
import sqlite3
from pathlib import Path

import pytest

from translucid.ground.errors import UserError
from translucid.serving.edge.failures import (
    INTERNAL,
    NO_ROOM,
    ApiError,
    GoneError,
    ServerError,
    error_body,
    status_of,
)
from translucid.serving.queue import as_server_errors


def full_database():
    """Fill a database up to its limit; return the error."""
    database = sqlite3.connect(":memory:")
    database.execute("PRAGMA max_page_count = 2")
    database.execute("CREATE TABLE t (x)")
    with pytest.raises(sqlite3.Error) as error:
        database.execute("INSERT INTO t VALUES (randomblob(99999))")
    return error.value


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [
        (ApiError(413, "too long"), 413, "too long"),
        (GoneError(), 404, "There is no such file, or not any more"),
        (UserError("is no document", file="a.docx"), 400, "a.docx: is no document."),
        (UserError("is no document"), 400, "is no document."),
        (UserError("is damaged", file=Path("/srv/run/model.safetensors")), 500, INTERNAL),
        (ServerError("the weights are damaged"), 500, INTERNAL),
        (OSError(errno.ENOSPC, "No space left on device"), 503, NO_ROOM),
        (OSError(errno.EDQUOT, "Disk quota exceeded"), 503, NO_ROOM),
        (OSError(errno.EACCES, "Permission denied"), 500, INTERNAL),
        (full_database(), 503, NO_ROOM),
        (sqlite3.OperationalError("database is locked"), 500, INTERNAL),
        (KeyError("name"), 500, INTERNAL),
    ],
)
def test_the_status_depends_on_who_caused_the_error(error, status, message, caplog):
    assert status_of(error) == (status, message)
    assert ("a request failed" in caplog.text) is (status >= 500)


def test_a_model_that_fails_in_the_middle_of_a_request_is_no_fault_of_the_request():
    with pytest.raises(ServerError, match="weights"), as_server_errors():
        raise UserError("the weights are not finite")
    with pytest.raises(KeyError), as_server_errors():
        raise KeyError("name")


@pytest.mark.parametrize(
    ("path", "root", "key"),
    [
        ("/translate", "", "error"),
        ("/v2/translate", "", "message"),
        ("/v3/glossaries", "", "message"),
        ("/mt/v2/translate", "/mt", "message"),  # behind a proxy with a prefix
        ("/v2/translate", "/v2", "error"),
    ],
)
def test_each_api_has_its_errors_in_its_own_words(path, root, key):
    assert error_body({"path": path, "root_path": root}, "no", 400) == {key: "no"}
