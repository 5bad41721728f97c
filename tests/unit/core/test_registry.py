"""The registry: entries announce themselves, and every look-up sees all of them."""

import sys
import textwrap
import threading
from dataclasses import dataclass

import pytest

from calviz.core.errors import OptionError
from calviz.core.registry import Registry, look_in


@dataclass(frozen=True)
class Entry:
    key: str


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package of two modules, slow to import, that register one entry each."""
    folder = tmp_path / "some_entries"
    folder.mkdir()
    (folder / "__init__.py").write_text(
        "from calviz.core.registry import Registry\nENTRIES = Registry('entry')\n"
    )
    for name in ("alpha", "beta"):
        (folder / f"{name}.py").write_text(
            textwrap.dedent(
                f"""
                import time
                from dataclasses import dataclass
                from some_entries import ENTRIES

                @dataclass(frozen=True)
                class Entry:
                    key: str

                time.sleep(0.05)
                ENTRIES.register(Entry("{name}"))
                """
            )
        )
    monkeypatch.syspath_prepend(tmp_path)
    look_in(entry="some_entries")
    import some_entries

    yield some_entries.ENTRIES
    for module in [m for m in sys.modules if m.startswith("some_entries")]:
        del sys.modules[module]


def test_the_modules_of_the_package_register_on_first_use(package):
    assert package.keys() == ("alpha", "beta")
    assert len(package) == 2
    assert "alpha" in package
    assert "gamma" not in package
    assert package["beta"].key == "beta"
    assert [entry.key for entry in package] == ["alpha", "beta"]


def test_threads_that_look_at_the_same_time_all_see_everything(package):
    seen = []
    threads = [threading.Thread(target=lambda: seen.append(package.keys())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [("alpha", "beta")] * 8


def test_an_unknown_key_is_answered_with_the_known_ones(package):
    with pytest.raises(OptionError, match="there is no entry 'gamma'; known: alpha, beta"):
        package["gamma"]


def test_a_key_is_taken_once():
    registry: Registry[Entry] = Registry("entry")
    registry.register(Entry("a"))
    with pytest.raises(OptionError, match="two entrys with the key 'a'"):
        registry.register(Entry("a"))


def test_an_import_that_fails_is_reported_again(tmp_path, monkeypatch):
    folder = tmp_path / "broken_entries"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "bad.py").write_text("raise RuntimeError('no')")
    monkeypatch.syspath_prepend(tmp_path)
    look_in(entry="broken_entries")
    registry: Registry[Entry] = Registry("entry")
    for _ in range(2):
        with pytest.raises(RuntimeError, match="no"):
            registry.keys()
