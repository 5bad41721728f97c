"""The command line as a contract: codes, streams, sentences, whatever is typed."""

import inspect
import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import Result

import calviz
from calviz.cli import main
from calviz.cli.command_group import OutputOption
from calviz.core.entry_specs import METRICS
from tests.inputs.command_line import run

ROOT = Path(__file__).parents[2]
PLAIN = "label,p_cat,p_dog,split\n0,0.9,0.1,a\n1,0.2,0.8,b\n0,0.4,0.6,a\n1,0.3,0.7,b\n"


def subprocess_run(*arguments: str, **options) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, "-m", "calviz", *arguments],
        **{"capture_output": True, "text": True, "check": False, "env": environment} | options,
    )


def assert_one_sentence(result: Result, *words: str) -> None:
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith("calviz: ")
    assert result.stderr.count("\n") == 1
    assert result.stderr.endswith((".\n", "?\n", "!\n"))
    assert "Traceback" not in result.stderr
    for word in words:
        assert word in result.stderr


@pytest.fixture
def plain(tmp_path) -> Path:
    file = tmp_path / "plain.csv"
    file.write_text(PLAIN)
    return file


class TestCommands:
    def test_without_a_command_it_says_what_there_is(self):
        result = run()
        assert result.exit_code == 0
        for name in ("audit", "metrics", "formats", "app"):
            assert f"\n  {name} " in result.stdout

    def test_only_what_is_finished_is_listed(self):
        assert sorted(main.list_commands(None)) == sorted(
            "app apply arena audit compare compare-models expected formats merge methods metrics over-time profile "
            "recalibrate sets threshold watch".split()
        )

    @pytest.mark.parametrize(
        "name",
        ["app", "arena", "audit", "compare", "compare-models", "formats", "methods", "metrics"],
    )
    def test_every_command_explains_itself(self, name):
        result = run(name, "--help")
        assert result.exit_code == 0
        assert f"Usage: calviz {name}" in result.stdout

    def test_every_option_has_a_help_text(self):
        without = [
            f"{name} {option.opts[0]}"
            for name in main.list_commands(None)
            for option in main.get_command(None, name).params
            if isinstance(option, click.Option) and not option.help
        ]
        assert without == []

    @pytest.mark.slow
    def test_options_work_where_python_drops_docstrings(self, plain):
        """What an option is called and takes comes from the signature; only its help is in the docstring."""
        command = [sys.executable, "-OO", "-m", "calviz", "audit", str(plain), "--time", "when"]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 2
        assert "the time column 'when' is not in the file" in done.stderr

    def test_the_help_names_the_number_of_rows_that_are_drawn(self):
        rows = inspect.signature(calviz.sample_rows).parameters["rows"].default
        assert f"[default: {rows}]" in " ".join(run("compare", "--help").stdout.split())

    def test_the_version(self):
        assert run("--version").stdout == f"calviz {calviz.__version__}\n"

    def test_metrics_lists_every_metric(self):
        result = run("metrics")
        assert result.exit_code == 0
        lines = result.stdout.splitlines()[1:]
        keys = [line.split()[0] for line in lines if not line.startswith(" ")]
        assert tuple(keys) == METRICS.keys()
        assert "Guo et al. 2017" in result.stdout

    def test_formats_lists_every_format(self):
        from calviz.data import FORMATS

        result = run("formats")
        assert result.exit_code == 0
        for entry in FORMATS:
            assert entry.label in result.stdout
        assert "--repair renormalise" in result.stdout

    def test_python_m_calviz_is_the_same(self):
        result = subprocess_run("--version")
        assert (result.returncode, result.stdout) == (0, f"calviz {calviz.__version__}\n")


class TestWrongArguments:
    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            (["nonsense"], ["No such command 'nonsense'", "calviz --help"]),
            (["audit"], ["Missing argument 'FILE...'", "calviz audit --help"]),
            (["audit", "--nonsense", "x"], ["No such option", "--nonsense"]),
            (["audit", "{file}", "--bins", "many"], ["--bins", "many"]),
            (["audit", "{file}", "--bins", "0"], ["--bins", "0"]),
            (["audit", "{file}", "--bins", "1000000"], ["number of bins"]),
            (["audit", "{file}", "--seed", "-1"], ["--seed"]),
            (["audit", "{file}", "--resamples", "0"], ["--resamples"]),
            (["audit", "{file}", "--kind", "odds"], ["--kind", "odds"]),
            (["audit", "{file}", "--reduction", "topmost"], ["'topmost' is unknown"]),
            (["audit", "{file}", "--reduction", "class:fox"], ["no class 'fox'", "cat, dog"]),
            (["audit", "{file}", "--split", "z"], ["plain.csv", "no split 'z'", "a, b"]),
            (["audit", "{file}", "--model", "z"], ["plain.csv", "no model 'z'", "plain"]),
            (["audit", "{file}", "--scores", "a,,b"], ["--scores", "empty name"]),
            (["audit", "{file}", "--repair", "magic"], ["no repair 'magic'", "renormalise"]),
            (["audit", "{file}", "--json", "{folder}"], ["is a directory"]),
            (["audit", "{file}", "--json", "{folder}/no/x.json"], ["no such directory"]),
            (["audit", "{file}", "--fail-on", "ece"], ["--fail-on 'ece' is not understood"]),
            (["audit", "{file}", "--fail-on", "ece>x"], ["not understood", '"ece>0.05"']),
            (["audit", "{file}", "--fail-on", "ece>nan"], ["not understood"]),
            (["audit", "{file}", "--fail-on", "ece=1"], ["not understood"]),
            (["audit", "{file}", "--fail-on", "nonsense>1"], ["there is no metric 'nonsense'"]),
            (["audit", "{file}", "--scores", "p_cat,p_cat"], ["--scores", "'p_cat' twice"]),
            (["profile", "{file}", "--by", "split,split", "--out", "x.parquet"], ["'split' twice"]),
            (["audit", "{file}", "--junit", "-"], ["--junit - is not a file"]),
            (
                [*"recalibrate {file} --method ets --out x.csv --save-map -".split()],
                ["--save-map - is not a file"],
            ),
            (["app", "--port", "0"], ["--port"]),
        ],
    )
    def test_they_are_answered_in_one_sentence(self, arguments, words, plain):
        arguments = [a.format(file=plain, folder=plain.parent) for a in arguments]
        assert_one_sentence(run(*arguments), *words)


class TestWrongFiles:
    def test_a_file_that_is_not_there(self, tmp_path):
        assert_one_sentence(run("audit", tmp_path / "none.csv"), "none.csv", "no such file")

    def test_a_folder(self, tmp_path):
        assert_one_sentence(run("audit", tmp_path), tmp_path.name)

    @pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read all")
    def test_a_file_that_may_not_be_read(self, plain):
        plain.chmod(0)
        assert_one_sentence(run("audit", plain), "plain.csv", "permission denied")

    def test_an_operating_system_error_is_a_sentence(self, plain, monkeypatch):
        def refuse(*_, **__):
            raise PermissionError(13, "Permission denied", str(plain))

        monkeypatch.setattr("calviz.data.read", refuse)
        assert_one_sentence(run("audit", plain), "plain.csv: permission denied.")

    def test_a_file_that_is_too_large_for_the_memory(self, plain, monkeypatch):
        def refuse(*_, **__):
            raise MemoryError

        monkeypatch.setattr("calviz.data.read", refuse)
        assert_one_sentence(run("audit", plain), "not enough memory")

    def test_a_bug_is_a_sentence_too(self, plain, monkeypatch):
        monkeypatch.setattr("calviz.data.read", lambda *_, **__: 1 / 0)
        assert_one_sentence(run("audit", plain), "ZeroDivisionError", "please report it")

    @pytest.mark.parametrize(
        ("content", "words"),
        [
            (b"", "empty"),
            (b"label,p_a,p_b\n", "no rows"),
            (b"label,p_a,p_b\n0,0.9,0.1\n7,0.5,0.5\n", "label 7"),
            (b"label,p_a,p_b\n0,0.9,0.3\n1,0.9,0.3\n", "1.2"),
            (b"label,p_a,p_b\n0,0.9,0.1\n1,,0.5\n", "p_a"),
            (b"\x80\x04\x95\x0c\x00\x00\x00\x00\x00\x00\x00\x8c\x08os.mkdir", "pickle"),
            (b"PK\x03\x04 not a zip at all", ""),
            (b"PAR1 and then nothing", "damaged"),
        ],
    )
    def test_broken_content(self, content, words, tmp_path):
        file = tmp_path / "broken.csv"
        file.write_bytes(content)
        assert_one_sentence(run("audit", file, "--json", "-"), "broken.csv", words)

    def test_a_repair_that_is_offered_is_named_as_an_option(self, tmp_path):
        file = tmp_path / "sums.csv"
        file.write_text("label,p_a,p_b\n0,0.9,0.3\n1,0.3,0.9\n")
        assert_one_sentence(run("audit", file), "--repair renormalise")
        repaired = run("audit", file, "--repair", "renormalise")
        assert repaired.exit_code == 0
        assert "repaired: " in repaired.stdout

    def test_the_other_files_are_judged_and_no_json_is_written(self, plain, tmp_path):
        out = tmp_path / "out.json"
        result = run("audit", tmp_path / "none.csv", plain, "--json", out)
        assert result.exit_code == 2
        assert "none.csv: there is no such file." in result.stderr
        assert "ECE" in result.stdout
        assert not out.exists()

    def test_names_from_a_file_never_reach_the_terminal_as_commands(self, tmp_path):
        file = tmp_path / "names.csv"
        file.write_text('"label","p_a[red]","p_\x1b[31mb"\n0,0.9,0.1\n1,0.2,0.8\n')
        result = run("audit", file)
        assert result.exit_code == 0
        assert "\x1b" not in result.stdout + result.stderr
        assert "a[red]" in result.stdout


class TestStreams:
    def test_json_on_standard_output_is_alone_there(self, plain):
        result = run("audit", plain, "--json", "-", "--fail-on", "ece>0")
        assert result.exit_code == 1
        json.loads(result.stdout)
        assert "ece is " in result.stderr

    def test_json_in_a_file_leaves_the_text_where_it_was(self, plain, tmp_path):
        out = tmp_path / "out.json"
        assert run("audit", plain, "--json", out).stdout == run("audit", plain).stdout
        assert json.loads(out.read_text())["rows"] == 4

    @pytest.mark.slow
    def test_nothing_is_coloured_in_a_pipe(self, plain):
        assert "\x1b" not in subprocess_run("audit", str(plain), "--ci").stdout

    @pytest.mark.slow
    @pytest.mark.skipif(sys.platform == "win32", reason="pipes are closed otherwise there")
    def test_a_closed_pipe_is_no_error(self):
        reader, writer = os.pipe()
        os.close(reader)
        result = subprocess_run(
            "metrics", capture_output=False, stdout=writer, stderr=subprocess.PIPE
        )
        os.close(writer)
        assert result.returncode == 141
        assert result.stderr == ""

    @pytest.mark.slow
    @pytest.mark.skipif(sys.platform == "win32", reason="pipes are closed otherwise there")
    @pytest.mark.parametrize("option", ["--json", "--junit"])
    def test_who_stops_reading_still_gets_the_file(self, plain, tmp_path, option):
        reader, writer = os.pipe()
        os.close(reader)
        out = tmp_path / "found.txt"
        result = subprocess_run(
            "audit",
            str(plain),
            option,
            str(out),
            capture_output=False,
            stdout=writer,
            stderr=subprocess.PIPE,
        )
        os.close(writer)
        assert (result.returncode, result.stderr) == (0, "")
        assert out.stat().st_size > 100

    def test_every_option_that_writes_a_file_is_known_as_one(self):
        """So that a closed pipe does not keep the file from being written."""
        names = "--json --html --pdf --markdown --junit --out --state --save-map --save-snippet"
        options = [
            option
            for name in main.list_commands(None)
            for option in main.get_command(None, name).params
            if set(option.opts) & set(names.split())
        ]
        assert len(options) > 20
        assert [o.opts for o in options if not isinstance(o, OutputOption)] == []

    def test_ctrl_c_stops_quietly(self, plain, monkeypatch):
        def interrupt(*_, **__):
            raise KeyboardInterrupt

        monkeypatch.setattr("calviz.data.read", interrupt)
        result = run("audit", plain)
        assert result.exit_code == 130
        assert "Traceback" not in result.output

    @pytest.mark.slow
    def test_a_console_that_knows_ascii_only_is_enough(self, tmp_path):
        file = tmp_path / "names.csv"
        file.write_text("label,p_\u00e9t\u00e9,p_\u732b\n0,0.9,0.1\n1,0.2,0.8\n", encoding="utf-8")
        environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "ascii"}
        result = subprocess_run("audit", str(file), env=environment)
        assert (result.returncode, result.stderr) == (0, "")
        assert "\\xe9t\\xe9" in result.stdout


class TestApp:
    """`calviz app` hands over to streamlit; what it hands over is checked, not streamlit."""

    @pytest.fixture
    def handed_over(self, monkeypatch):
        monkeypatch.setattr("sys.argv", ["calviz"])
        # Set first, so that whatever the command leaves there is gone after the test.
        monkeypatch.setenv("CALVIZ_OPEN", "")
        monkeypatch.delenv("CALVIZ_OPEN")
        calls = []

        def run_module(name, **_):
            calls.append((name, sys.argv[1:], os.environ.get("CALVIZ_OPEN")))
            monkeypatch.delenv("CALVIZ_OPEN", raising=False)

        monkeypatch.setattr("runpy.run_module", run_module)
        monkeypatch.setattr("importlib.util.find_spec", lambda _: object())
        return calls

    def test_the_app_is_served_on_this_machine_only(self, handed_over, monkeypatch, tmp_path):
        monkeypatch.chdir(tmp_path)
        done = run("app", "--no-browser")
        assert done.exit_code == 0
        [(module, arguments, opened)] = handed_over
        assert module == "streamlit"
        assert arguments[0] == "run"
        assert Path(arguments[1]).name == "app.py"
        assert Path(arguments[1]).is_file()
        assert "--server.address=127.0.0.1" in arguments
        assert "--browser.gatherUsageStats=false" in arguments
        assert "--server.headless=true" in arguments
        assert "--client.showErrorDetails=none" in arguments
        # Streamlit's own welcome advertises, and may ask a server elsewhere for this machine's address.
        assert "--logger.hideWelcomeMessage=true" in arguments
        [port] = [a.removeprefix("--server.port=") for a in arguments if "server.port=" in a]
        assert f"http://127.0.0.1:{port} " in done.stdout
        assert opened is None

    def test_without_a_port_the_first_free_one_is_taken(self, handed_over, monkeypatch):
        with socket.socket() as taken, socket.socket() as free:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            free.bind(("127.0.0.1", 0))
            ports = [s.getsockname()[1] for s in (taken, free)]
            free.close()
            monkeypatch.setattr("calviz.cli.service_commands.PORTS", ports[:1])
            assert_one_sentence(run("app"), "no port of 127.0.0.1", "--port")
            assert not handed_over
            monkeypatch.setattr("calviz.cli.service_commands.PORTS", ports)
            assert run("app").exit_code == 0
        [(_, arguments, _)] = handed_over
        assert f"--server.port={ports[1]}" in arguments

    def test_a_file_is_opened_first(self, handed_over, monkeypatch, plain):
        monkeypatch.chdir(plain.parent)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        assert run("app", plain.name, "--port", str(port)).exit_code == 0
        [(_, arguments, opened)] = handed_over
        assert opened == str(plain)
        assert f"--server.port={port}" in arguments
        assert "--server.headless=false" in arguments

    def test_comparisons_are_kept_only_where_it_is_said(self, handed_over, monkeypatch, tmp_path):
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("CALVIZ_CACHE", "of another server")
        assert run("app", "--no-browser").exit_code == 0
        assert "CALVIZ_CACHE" not in os.environ
        assert run("app", "--cache", "kept").exit_code == 0
        assert os.environ["CALVIZ_CACHE"] == str(tmp_path / "kept")
        (tmp_path / "file").touch()
        assert_one_sentence(run("app", "--cache", "file"), "file")

    def test_a_port_that_is_taken(self, handed_over):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            assert_one_sentence(
                run("app", "--port", str(port)), f"port {port} of 127.0.0.1 is not free"
            )
        assert not handed_over

    def test_another_address_is_only_listened_on_when_asked_for(self, handed_over):
        assert run("app", "--host", "0.0.0.0").exit_code == 0
        [(_, arguments, _)] = handed_over
        assert "--server.address=0.0.0.0" in arguments

    def test_an_address_that_there_is_not(self, handed_over):
        assert_one_sentence(run("app", "--host", "no.such.host.invalid"), "no.such.host.invalid")
        assert not handed_over

    def test_a_file_that_is_not_there(self, handed_over, tmp_path):
        assert_one_sentence(run("app", tmp_path / "none.csv"), "none.csv", "no such file")
        assert not handed_over

    def test_without_streamlit_it_says_what_to_install(self, monkeypatch):
        monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
        assert_one_sentence(run("app"), "streamlit", "pip install streamlit")

    def test_every_setting_is_one_that_streamlit_knows(self):
        config = pytest.importorskip("streamlit.config", reason="streamlit is not installed")
        from calviz.cli.service_commands import _flags

        known = set(config.get_config_options())
        for flag in _flags(ROOT, "127.0.0.1", 8501, True):
            assert flag.removeprefix("--").split("=")[0] in known

    @pytest.mark.parametrize(
        ("arguments", "allowed"),
        [
            ((), ["127.0.0.1", "localhost", "::1"]),
            (("--host", "0.0.0.0"), []),
            (
                ("--host", "0.0.0.0", "--allow-host", "a.example.com"),
                ["127.0.0.1", "localhost", "::1", "a.example.com"],
            ),
        ],
    )
    def test_it_answers_to_its_own_names_only(self, handed_over, arguments, allowed):
        assert run("app", *arguments).exit_code == 0
        [(_, passed, _)] = handed_over
        given = [a.partition("=")[2] for a in passed if a.startswith("--server.allowedHosts=")]
        assert given == allowed
