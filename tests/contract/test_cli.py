"""The command line."""

import errno
import gzip
import inspect
import json
import os
import re
import resource
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import click
import numpy as np
import pytest
from click.testing import CliRunner, Result

import calviz
from calviz.cli import main
from calviz.cli.command_group import OutputOption, sentence
from calviz.cli.options import reading_options
from calviz.core.entry_specs import METRICS
from calviz.core.errors import OutputError
from calviz.data.writing import write_predictions
from tests.inputs.command_line import outcome, run, run_successfully

# ---- The command line as a contract: codes, streams, sentences, whatever is typed


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

    def test_every_command_has_a_summary_that_fits(self):
        text = run("-h").stdout
        assert text == run("--help").stdout
        assert max(map(len, text.splitlines())) <= 80
        listed = text.split("Commands:\n")[1].split("\n\n")[0].splitlines()
        assert [line.split()[0] for line in listed] == main.list_commands(None)
        assert all(
            line.endswith(".") and "..." not in line.replace("FILE...", "") for line in listed
        )

    @pytest.mark.slow
    def test_the_help_imports_no_numpy(self):
        code = "import sys; from calviz.cli import main\ntry: main(['--help'])\nexcept SystemExit: print('numpy' in sys.modules)"
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
        )
        assert done.stdout.splitlines()[-1] == "False"

    @pytest.mark.parametrize("arguments", [["-h"], ["audit", "-h"], ["watch", "-h"]])
    def test_the_help_names_the_exit_codes_of_the_manual(self, arguments):
        text = " ".join(run(*arguments).stdout.split())
        codes = re.findall(r"(\d+) ", text.partition("Exit codes: ")[2])
        page = (ROOT / "docs/how-to/command-line.md").read_text(encoding="utf-8")
        [line] = re.findall(r"Exit codes: [^.]*\.", " ".join(page.split()))
        assert codes == ["0", "1", "2", "130", "143", "141"]
        assert re.findall(r"(\d+) ", line) == codes

    @pytest.mark.parametrize(
        ("line", "expected"),
        [
            ("calviz aud", ["plain,audit"]),
            ("calviz metr", ["plain,metrics"]),
            ("calviz recalibrate --method isot", ["plain,isotonic"]),
            ("calviz compare --methods platt,isot", ["plain,platt,isotonic"]),
            ("calviz audit --metrics ece,nagel", ["plain,ece,nagelkerke_r2"]),
            ("calviz audit rows", ["file,rows"]),
            ("calviz apply --map map", ["file,map"]),
        ],
    )
    def test_shells_complete_commands_keys_and_files(self, line, expected, monkeypatch, capsys):
        words = line.split()
        monkeypatch.setenv("_CALVIZ_COMPLETE", "bash_complete")
        monkeypatch.setenv("COMP_WORDS", line)
        monkeypatch.setenv("COMP_CWORD", str(len(words) - 1))
        with pytest.raises(SystemExit):
            main([])
        assert capsys.readouterr().out.split() == expected

    def test_only_what_is_finished_is_listed(self):
        assert sorted(main.list_commands(None)) == sorted(
            "app apply arena audit compare compare-models expected folds formats judge merge methods metrics over-time "
            "profile recalibrate sets sites slices threshold watch".split()
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

    def test_help_names_the_options_of_reading_which_formats_explains(self):
        explained = run("formats").stdout
        for option in reading_options():
            assert option.opts[0] in run("audit", "--help").stdout
            assert option.help[:60] in explained
        assert "--answer-pattern REGEX" not in run("audit", "--help").stdout
        assert "--cluster COL" in run("judge", "--help").stdout  # it has only this one

    def test_python_m_calviz_is_the_same(self):
        result = subprocess_run("--version")
        assert (result.returncode, result.stdout) == (0, f"calviz {calviz.__version__}\n")


class TestStandardInput:
    @pytest.fixture
    def given(self, plain, monkeypatch):
        """Runs a command whose standard input has these bytes."""

        def run_with(content: bytes, *arguments: object) -> Result:
            return CliRunner().invoke(main, [str(a) for a in arguments], input=content)

        return run_with

    def test_it_is_read_as_the_file(self, given, plain):
        named = run("audit", plain, "--json", "-")
        piped = given(plain.read_bytes(), "audit", "-", "--json", "-")
        assert (piped.exit_code, piped.stderr) == (0, "")
        one, other = json.loads(named.stdout), json.loads(piped.stdout)
        assert (other.pop("file"), other.pop("name")) == ("stdin", "stdin")
        del one["file"], one["name"]
        assert one == other

    @pytest.mark.parametrize("suffix", [".csv.gz", ".npz", ".parquet", ".jsonl"])
    def test_any_format_is_known_by_its_content(self, given, plain, tmp_path, suffix):
        path = tmp_path / f"rows{suffix}"
        data = calviz.load(plain)
        if suffix == ".csv.gz":
            path.write_bytes(gzip.compress(plain.read_bytes()))
        elif suffix == ".jsonl":
            lines = [
                {"label": int(y), "p": float(p[1])}
                for y, p in zip(data.labels, data.probs, strict=True)
            ]
            path.write_text("\n".join(map(json.dumps, lines)))
        else:
            write_predictions(data, path)
        done = given(path.read_bytes(), "audit", "-", "--brief")
        assert (done.exit_code, done.stderr) == (0, "")

    @pytest.mark.parametrize(
        ("content", "words"),
        [
            (b"", "stdin: the file is empty."),
            (b"\x80\x04\x95abcdef", "stdin: pickle files are not read"),
            (b"a,b\n", "stdin.csv: there is a header but no rows of data"),
        ],
    )
    def test_what_is_wrong_names_it(self, given, content, words):
        done = given(content, "audit", "-")
        assert_one_sentence(done, words)

    @pytest.mark.slow
    def test_every_command_that_reads_a_file_takes_it(self, given, plain, tmp_path):
        content = plain.read_bytes()
        for arguments in (
            ("profile", "-", "--out", tmp_path / "profile.parquet"),
            ("expected", "-"),
            ("compare-models", "-", plain),
        ):
            done = given(content, *arguments)
            assert done.exit_code == 0, done.output
            assert "calviz-" not in done.output  # the temporary folder is nobody's business
        assert not list(Path(tempfile.gettempdir()).glob("calviz-*/stdin*"))


class TestWrongArguments:
    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            (["nonsense"], ["No such command 'nonsense'; see 'calviz --help'."]),
            (["audti"], ["No such command 'audti'; did you mean 'audit'? see 'calviz --help'."]),
            (["compare-model", "x"], ["did you mean 'compare-models'?"]),
            (
                ["audit", "{file}", "--fail", "x"],
                ["No such option '--fail'", "'calviz audit --help'"],
            ),
            (["audit", "{file}", "--jsn", "x"], ["No such option '--jsn'; did you mean '--json'?"]),
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
            (
                [*"recalibrate {file} --method ets --out no/x.csv".split()],
                ["'no/x.csv': there is no such directory"],
            ),
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
            (["app", "--host"], ["'--host' requires an argument; see 'calviz app --help'."]),
            # Refused before the file is read.
            (["sets", "no.csv", "--coverage", "90"], ["'--coverage' must", "(90 % is 0.9)"]),
            (["threshold", "no.csv", "--risk", "5"], ["'risk' must", "(5 % is 0.05)"]),
            (["threshold", "no.csv", "--confidence", "95"], ["'--confidence' must"]),
            (["audit", "no.csv", "--guarantee", "95"], ["'--guarantee' must"]),
            (["judge", "no.csv", "--confidence", "2"], ["'--confidence' must"]),
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
        assert repaired.stdout.count("changed as asked: renormalise: 2 of 2 rows") == 1
        assert repaired.stdout.count("renormalise") == 1

    def test_the_other_files_are_judged_and_no_json_is_written(self, plain, tmp_path):
        out = tmp_path / "out.json"
        result = run("audit", tmp_path / "none.csv", plain, "--json", out)
        assert result.exit_code == 2
        assert "none.csv: there is no such file." in result.stderr
        assert "ECE" in result.stdout
        assert not out.exists()

    def test_names_from_a_file_never_reach_the_terminal_as_commands(self, tmp_path):
        file = tmp_path / "names.csv"
        # A name that holds a number is asked about.
        for name, code in (("\x1b[mb", 0), ("\x1b[31mb", 2)):
            file.write_text(f'"label","p_a[red]","p_{name}"\n0,0.9,0.1\n1,0.2,0.8\n')
            result = run("audit", file)
            assert result.exit_code == code
            assert "\x1b" not in result.stdout + result.stderr
            assert "a[red]" in result.stdout + result.stderr


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
        assert_one_sentence(run("app"), "streamlit", "pip install 'calviz[app]'")

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


# ---- Full disks and Ctrl-C: one sentence, and no file that is half written


def _predictions():
    rng = np.random.default_rng(0)
    return rng.dirichlet(np.full(20, 0.3), 2_000), rng.integers(0, 20, 2_000)


@pytest.fixture
def full_disk():
    """No file may grow beyond a few kilobytes, as on a disk that is full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))  # noqa: E731
    yield limit
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".npz", ".NPZ"])
def test_a_full_disk_is_a_sentence_and_the_old_file_is_still_there(full_disk, tmp_path, suffix):
    probs, labels = _predictions()
    out = tmp_path / f"out{suffix}"
    out.write_text("old")
    full_disk()
    with pytest.raises(OutputError, match="what was there before is unchanged") as caught:
        write_predictions(calviz.Predictions(probs=probs, labels=labels), out)
    assert sentence(caught.value).startswith(f"out{suffix}: cannot be written (")
    assert [(p.name, p.read_text()) for p in tmp_path.iterdir()] == [(out.name, "old")]


def test_a_full_standard_output_is_named():
    full = OSError(errno.ENOSPC, "No space left on device")
    assert sentence(full) == "the output: no space left on device."


def _started(command, **pipes):
    return subprocess.Popen(
        [sys.executable, "-m", "calviz", *map(str, command)],
        cwd=ROOT,
        text=True,
        # Whoever runs the tests in the background of a shell has had Ctrl-C switched off for them.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        **pipes,
    )


@pytest.mark.slow
def test_ctrl_c_ends_at_once_with_a_sentence_and_no_file(tmp_path):
    probs, labels = _predictions()
    file, out = tmp_path / "in.npz", tmp_path / "out.json"
    np.savez(file, probs=probs, labels=labels)
    command = ["compare", file, "--cross-fit", "10", "--metrics", "nll", "--json", out]
    process = _started(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert process.stderr is not None
    process.stderr.readline()  # the file is read, or the first method done: it is at work
    began = time.monotonic()
    os.kill(process.pid, signal.SIGINT)
    _, text = process.communicate(timeout=60)
    assert time.monotonic() - began < 20
    assert process.returncode == 130
    last = text.strip().splitlines()[-1]
    assert last == "calviz: interrupted; no output file is left incomplete."
    assert "Traceback" not in text
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.slow
def test_a_program_that_is_ended_leaves_no_incomplete_file(tmp_path):
    file, out = tmp_path / "in.npz", tmp_path / "out" / "out.csv"
    out.parent.mkdir()
    rng = np.random.default_rng(0)
    np.savez(file, probs=rng.dirichlet(np.ones(3), 200_000), labels=rng.integers(0, 3, 200_000))
    process = _started(
        ["recalibrate", file, "--method", "identity", "--out", out],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    while process.poll() is None and not list(out.parent.iterdir()):
        time.sleep(0.001)
    process.terminate()  # while the file is written beside its place
    _, text = process.communicate(timeout=60)
    assert (process.returncode, text) == (
        143,
        "calviz: ended; no output file is left incomplete.\n",
    )
    assert not list(out.parent.iterdir())


@pytest.mark.slow
def test_standard_output_that_is_closed_is_no_error(tmp_path):
    file, out = tmp_path / "in.csv", tmp_path / "out.json"
    file.write_text("label,p\n0,0.2\n1,0.8\n")
    line = f"{sys.executable} -m calviz audit {file} --json {out} >&-"
    done = subprocess.run(
        line, shell=True, cwd=ROOT, stderr=subprocess.PIPE, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(out.read_text())["rows"] == 2


def test_a_loop_of_links_is_no_file(tmp_path):
    loop = tmp_path / "loop.csv"
    loop.symlink_to("loop.csv")
    for command in (["audit"], ["recalibrate", "--method", "platt", "--out", tmp_path / "o.csv"]):
        code, _, wrong = outcome(command[0], loop, *command[1:])
        assert (code, wrong) == (2, f"calviz: {loop}: there is no such file.\n")
    assert list(tmp_path.iterdir()) == [loop]


def test_logits_that_are_too_large_for_a_fit_are_compared_as_they_are(tmp_path):
    # All rows say class 1, which is wrong in a quarter of them; each of these adds 2 to the sum over classes.
    file, out = tmp_path / "large.csv", tmp_path / "o.json"
    rows = "".join(f"{int(i % 4 > 0)},-1e30,1e30\n" for i in range(40))
    file.write_text("label,logit_0,logit_1\n" + rows)
    code, _, wrong = outcome(
        *("compare", file, "--methods", "temperature", "--fit-fraction", "0.5"),
        *("--json", out, "--html", tmp_path / "o.html"),
    )
    assert (code, "temperature: row 1: the logit of class 1 is 1e+30" in wrong) == (0, True)
    methods = json.loads(out.read_text())["methods"]
    assert (methods["identity"]["ok"], methods["temperature"]["ok"]) == (True, False)
    assert methods["identity"]["metrics"]["brier"]["value"] == pytest.approx(2 * 0.25)


# ---- `--html` and `--markdown` of `calviz audit` and `calviz compare`


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    rng = np.random.default_rng(5)
    p = rng.uniform(size=120)
    rows = [f"{int(rng.uniform() < v)},{v:.6f}" for v in p]
    path = tmp_path_factory.mktemp("files") / "rain.csv"
    path.write_text("\n".join(["label,p", *rows]) + "\n")
    return path


@pytest.mark.slow
def test_an_audit_writes_the_same_report_twice(file, tmp_path):
    for name in ("one", "two"):
        result = run(
            *("audit", file, "--reduction", "top-label", "--resamples", 50),
            *("--html", tmp_path / f"{name}.html", "--markdown", tmp_path / f"{name}.md"),
        )
        assert result.exit_code == 0, result.stderr
        assert "Brier score" in result.stdout
    html = (tmp_path / "one.html").read_bytes()
    assert html == (tmp_path / "two.html").read_bytes()
    assert (tmp_path / "one.md").read_bytes() == (tmp_path / "two.md").read_bytes()
    assert b"<title>rain.csv</title>" in html
    assert b"reduction top-label, 50 resamples" in html


@pytest.mark.slow
def test_several_files_are_several_parts(file, tmp_path):
    other = tmp_path / "snow.csv"
    other.write_text(file.read_text())
    result = run(
        "audit", file, other, "--resamples", 20, "--markdown", tmp_path / "both.md", "--json", "-"
    )
    assert result.exit_code == 0, result.stderr
    text = (tmp_path / "both.md").read_text()
    assert text.startswith("# Calibration of several models\n")
    assert "## rain.csv" in text
    assert "## snow.csv" in text


@pytest.mark.parametrize("command", [("audit",), ("compare",), ("compare-models",)])
@pytest.mark.parametrize("option", ["--html", "--markdown"])
def test_a_place_that_cannot_be_written_is_found_out_first(command, option, file, tmp_path):
    for path, words in ((tmp_path, "is a directory"), (tmp_path / "no" / "x", "no such directory")):
        result = run(*command, file, option, path)
        assert result.exit_code == 2
        assert words in result.stderr
        assert result.stdout == ""


@pytest.mark.slow
def test_a_file_that_cannot_be_used_leaves_no_report(file, tmp_path):
    target = tmp_path / "report.html"
    result = run("audit", file, tmp_path / "missing.csv", "--resamples", 20, "--html", target)
    assert result.exit_code == 2
    assert not target.exists()


@pytest.mark.slow
def test_a_comparison_writes_a_report(file, tmp_path):
    target = tmp_path / "report.html"
    result = run(*("compare", file, "--methods", "platt", "--fit-fraction", 0.5, "--html", target))
    assert result.exit_code == 0, result.stderr
    html = target.read_text()
    assert 'id="comparison"' in html
    assert "60\u00a0rows" in html or "60 rows" in html


@pytest.mark.slow
def test_models_of_two_files_are_parts_of_one_report(file, tmp_path):
    other = tmp_path / "snow.csv"
    other.write_text(file.read_text())
    html, card = tmp_path / "report.html", tmp_path / "card.md"
    result = run(
        *("compare-models", file, other, "--reduction", "positive", "--resamples", 50),
        *("--html", html, "--markdown", card),
    )
    assert result.exit_code == 0, result.stderr
    text = card.read_text()
    assert "## rain" in text
    assert "## snow" in text
    assert text.count("## Compare models") == 1
    assert 'id="models"' in html.read_text()


def test_the_command_that_is_offered_replaces_what_was_typed(tmp_path):
    rng = np.random.default_rng(0)
    rows = [f"{p:.3f},{q:.3f},{int(rng.random() < p)}\n" for p, q in rng.random((200, 2))]
    (file := tmp_path / "two models.csv").write_text("p_old,p_new,rain\n" + "".join(rows))
    refused = run("audit", file, "--scores=p_old", "--scores", "p_new", "--label", "rain")
    for offered in re.findall(r": calviz (audit .*)", refused.stderr):
        assert ("--scores" in offered) is (offered.count("p_new") + offered.count("p_old") == 1)
        assert "200 rows" in run_successfully(*shlex.split(offered))
    # Nothing typed is replaced: the options alone are to be added. Lists of names add up.
    assert ": --models p_old,p_new" in run("audit", file, "--label", "rain").stderr
    compared = run_successfully(
        "compare-models", file, "--models", "p_old", "--models", "p_new", "--label", "rain"
    )
    assert "'new': " in compared
