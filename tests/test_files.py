"""Files that grow while somebody reads them."""

import pytest

from ludus.errors import LudusError
from ludus.files import GrowingLog, read_lines


def test_a_log_that_grows_is_read_on_from_where_it_was(tmp_path, monkeypatch):
    path = tmp_path / "log.jsonl"
    log = GrowingLog(path)
    assert log.read() == []
    path.write_text('{"a": 1}\n{"a": 2')
    assert log.read() == [{"a": 1}]
    with path.open("a") as file:
        file.write('}\nno json\n[1]\n{"a": 3}\n')
    assert log.read() == [{"a": 1}, {"a": 2}, {"a": 3}] == log.read()
    read = []
    whole = GrowingLog._from_end
    monkeypatch.setattr(GrowingLog, "_from_end", lambda log: read.append(whole(log)) or read[-1])
    for count in (103, 203):
        path.write_text(path.read_text() + '{"a": 4}\n' * 100)
        assert len(log.read()) == count
    assert len(read[-1]) == GrowingLog.REMEMBERED + 900 < len(path.read_bytes())
    for text in ('{"b": 1}\n', '{"b": 2}\n' * 500, ""):  # cut back, and written again
        path.write_text(text)
        assert log.read() == read_lines(path)
    path.unlink()
    path.mkdir()
    with pytest.raises(LudusError, match="is a folder"):
        log.read()
