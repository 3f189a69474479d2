from pathlib import Path

import pytest

from jepatlas.core.files import cache_folder


def test_the_cache_lies_where_the_user_says_or_at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "jepatlas"
    for none in ("", "relative/path"):
        monkeypatch.setenv("XDG_CACHE_HOME", none)
        assert cache_folder() == Path.home() / ".cache" / "jepatlas"
