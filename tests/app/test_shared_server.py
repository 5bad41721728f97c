"""Several sessions on one server, and hostile text."""

import ast
import asyncio
import errno
import html
import json
import math
import re
import socket
import subprocess
import sys
import threading
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest
import streamlit
from hypothesis import given
from hypothesis import strategies as st
from streamlit.errors import StreamlitAPIException
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.uploaded_file_manager import UploadedFileRec
from streamlit.testing.v1 import AppTest

from calviz.app import jobs, navigation, open_files, upload
from calviz.app.jobs import (
    JOB_QUEUE,
    RESUMABLE_FOR,
    SESSIONS_CHECK_EVERY,
    EndedSessions,
    Job,
    JobQueue,
)
from calviz.app.open_files import OpenFile, SessionMap, make_room
from calviz.app.session import Settings, cached_results, md
from calviz.core.blocks import Stopped
from calviz.core.entry_specs import Interval, MetricResult, NoiseFloor
from calviz.core.events import Reduction
from calviz.core.words import distinct, file_size, number, shorten
from calviz.data import ReadingOptions
from calviz.data.reading import SAMPLES
from calviz.verdicts.evaluation import Written
from tests.app.pages import PATIENCE, app_of

# ---- What many people on one server mean: a line for long work, room per session, one temporary folder


ROOT = Path(__file__).resolve().parents[2]


# ---------------------------------------------------------------- turns


def _no(*_: object) -> bool:
    return False


def _in_line(queue, names):
    """Threads that wait for a turn in this order; each notes its name and goes on when told."""
    began, go = [], threading.Event()

    def work(name):
        with queue.place(name[0], stopping=_no, report_ahead=_no):
            began.append(name)
            go.wait(PATIENCE)

    threads = []
    for name in names:
        thread = threading.Thread(target=work, args=(name,), daemon=True)
        thread.start()
        threads.append(thread)
        _until(lambda: len(queue._waiting) + len(queue._running) == len(threads))
    return began, go, threads


def _until(true):
    end = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < end
        time.sleep(0.005)


def test_no_more_jobs_work_than_there_are_places_and_nobody_is_kept_waiting_by_one_person():
    queue = JobQueue(lambda: 2)
    began, go, threads = _in_line(queue, ["a1", "a2", "a3", "b1"])
    _until(lambda: len(began) == 2)
    assert sorted(began) == ["a1", "a2"]  # which of them notes its name first is chance
    assert queue._order()[0][0] == "b"  # came last, but a has two at work
    go.set()
    for thread in threads:
        thread.join(PATIENCE)
    assert sorted(began) == ["a1", "a2", "a3", "b1"]
    assert queue._waiting == queue._running == []


def test_who_waits_is_told_how_many_are_ahead_and_may_leave():
    queue, messages, leave = JobQueue(lambda: 1), [], threading.Event()
    _, go, threads = _in_line(queue, ["a1", "b1"])

    def wait():
        with (
            pytest.raises(Stopped),
            queue.place("c", stopping=leave.is_set, report_ahead=messages.append),
        ):
            pytest.fail("it was not its turn")

    thread = threading.Thread(target=wait)
    thread.start()
    _until(lambda: messages)
    assert messages[0] == 2
    leave.set()
    thread.join(PATIENCE)
    assert not thread.is_alive()
    go.set()
    for other in threads:
        other.join(PATIENCE)
    assert queue._waiting == queue._running == []


@pytest.mark.slow
def test_a_job_waits_its_turn_says_so_and_can_be_stopped_before_it_begins(monkeypatch):
    monkeypatch.setenv("CALVIZ_MAX_JOBS", "1")
    go = threading.Event()
    first = Job(("1",), "First", lambda job: go.wait(PATIENCE), owner="a")
    second = Job(("2",), "Second", lambda job: 2, owner="b")
    third = Job(("3",), "Third", lambda job: pytest.fail("it was stopped"), owner="c")
    for job in (first, second, third):
        job.start()
        _until(lambda: len(JOB_QUEUE._waiting) + len(JOB_QUEUE._running) >= 1)
    _until(lambda: second.ahead and third.ahead)
    assert second.running
    assert jobs.waiting_words(2).startswith("Waiting for 2 other computations on this server")
    third.stop()
    third.wait(PATIENCE)
    go.set()
    second.wait(PATIENCE)
    assert (second.state, second.result, second.ahead) == ("finished", 2, 0)
    assert (third.state, third.result) == ("stopped", None)


@pytest.mark.slow
def test_a_page_says_that_a_job_waits(monkeypatch):
    def script():
        import streamlit as st

        from calviz.app import jobs

        job = jobs.latest("test") or jobs.start("test", ("a",), "Counting", lambda job: 1)
        jobs.draw_job(job)
        st.text(job.state)

    monkeypatch.setenv("CALVIZ_MAX_JOBS", "1")
    go = threading.Event()
    blocking = Job(("1",), "Another person's", lambda job: go.wait(PATIENCE), owner="a")
    blocking.start()
    _until(lambda: len(JOB_QUEUE._running) == 1)
    app = app_of(script).run()
    (job,) = app.session_state["calviz.jobs"]["test"].values()
    _until(lambda: job.ahead == 1)
    app.run()
    assert [c.value for c in app.caption] == [jobs.waiting_words(1)]
    assert app.button(key="calviz.job.stop")
    go.set()
    _until(lambda: not (JOB_QUEUE._waiting or JOB_QUEUE._running))
    blocking.wait(PATIENCE)


# ---------------------------------------------------------------- room


def _entry(title, size):
    return SimpleNamespace(title=title, source=bytes(size), loaded=SimpleNamespace(models={}))


@pytest.mark.parametrize(
    ("variable", "limit", "left", "words"),
    [
        ("OPEN_FILES", "2", "cd", "'a', 'b' were closed, as one session may hold 2 open files"),
        ("OPEN_BYTES", "350", "bcd", "'a' was closed, as one session may hold 350 bytes"),
        ("OPEN_BYTES", "10", "d", "10 bytes at most"),
        ("OPEN_FILES", "4", "abcd", None),
    ],
)
def test_the_oldest_files_make_room_and_that_is_said(monkeypatch, variable, limit, left, words):
    monkeypatch.setenv(f"CALVIZ_MAX_{variable}", limit)
    files = {name: _entry(name, 100) for name in "abcd"}
    text = make_room(files, "d")
    assert "".join(files) == left
    assert text is None if words is None else words in text
    assert text is None or f"CALVIZ_MAX_{variable}" in text


def test_the_file_that_was_just_opened_stays():
    files = {name: _entry(name, 1) for name in map(str, range(20))}
    make_room(files, "0")
    assert "0" in files
    assert len(files) == 12


# ---------------------------------------------------------------- sessions that ended


def test_what_a_session_holds_is_let_go_when_nobody_can_come_back():
    here, files, work, closed = {"a", "b"}, {"file": 1}, {"job": 2}, []
    sessions = EndedSessions(lambda session: session in here, closed.append)
    sessions.remember("a", files, work)
    sessions.remember("b", {"other": 3})
    sessions.release_ended(0.0)
    here.clear()
    sessions.release_ended(1.0)
    here.add("b")
    assert not sessions.release_ended(1.0 + RESUMABLE_FOR)
    assert files == {"file": 1}
    assert sessions.release_ended(1.1 + RESUMABLE_FOR)
    assert files == work == {}
    assert set(sessions._contents) == {"b"}
    assert closed == ["a"]


def test_streamlit_keeps_a_session_until_it_is_closed():
    config = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text())
    kept = config["server"]["disconnectedSessionTTL"]
    assert kept > RESUMABLE_FOR + 2 * SESSIONS_CHECK_EVERY


# ---------------------------------------------------------------- the temporary folder

SERVER = """
import sys
from pathlib import Path
from calviz.app.navigation import own_folder
with own_folder(Path(sys.argv[1])) as folder:
    print(folder, flush=True)
    sys.stdin.readline()
"""


def test_what_a_listening_socket_accepts_sends_small_packets_at_once():
    def at_once(connection):
        return connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0

    def accepted(listening):
        with socket.create_connection(listening.getsockname()), listening.accept()[0] as connection:
            return at_once(connection)

    # As streamlit opens it.
    with socket.socket(family=socket.AF_INET) as listening, socket.socket() as other:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        assert not accepted(listening)
        navigation.answer_at_once()
        assert accepted(listening)
        assert not at_once(other)


def test_a_page_names_the_code_of_plotly_and_a_file_does_not():
    def served(kind):
        sent = []

        async def app(scope, receive, send):
            headers = [(b"content-type", kind)]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            await send({"type": "http.response.body", "body": b""})

        async def send(message):
            sent.append(message)

        asyncio.run(navigation.preloading(app)({"type": "http"}, None, send))
        return [value.decode() for name, value in sent[0]["headers"] if name == b"link"]

    (link,) = served(b"text/html; charset=utf-8")
    path = re.fullmatch(r"<\./(.*)>; rel=modulepreload; fetchpriority=low", link)[1]
    assert "plotly" in (Path(streamlit.__file__).with_name("static") / path).read_text()
    assert served(b"application/javascript") == []


@pytest.mark.parametrize(
    "path", sorted((ROOT / "calviz" / "app").glob("*.css")), ids=lambda p: p.name
)
def test_styles_have_no_sign_that_the_browser_takes_for_a_tag(path):
    # It then drops the whole sheet, without a word.
    assert "<" not in path.read_text()


@pytest.mark.slow
def test_a_server_removes_its_folder_and_those_of_killed_servers_but_no_other(tmp_path):
    (tmp_path / "calviz-server-link").symlink_to(tmp_path)
    command = [sys.executable, "-c", SERVER, str(tmp_path)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "cwd": ROOT}
    one, two = (subprocess.Popen(command, **pipes) for _ in range(2))
    killed, ended = (Path(p.stdout.readline().strip()) for p in (one, two))
    assert killed.stat().st_mode & 0o077 == 0
    (killed / "spool").write_text("x")
    one.kill()
    one.communicate(timeout=PATIENCE)
    navigation.remove_leftovers(tmp_path)
    assert not killed.exists()
    assert ended.exists()
    two.communicate("\n", timeout=PATIENCE)
    assert [p.name for p in tmp_path.iterdir()] == ["calviz-server-link"]


def test_two_servers_may_remove_the_same_leftover(tmp_path):
    gone, left = tmp_path / "calviz-server-gone", tmp_path / "calviz-server-left"
    left.mkdir()
    (left / navigation.LOCK).touch()
    # The other server removed the first one after this one had listed both.
    navigation.remove_leftovers(SimpleNamespace(glob=lambda _: [gone, left]))
    assert not left.exists()


def test_files_are_found_again_by_the_secret_of_their_session_until_it_is_emptied(monkeypatch):
    def new_session():
        monkeypatch.setattr(open_files.st, "session_state", {})

    new_session()
    before = open_files.files()
    before["digits"] = OpenFile("digits", "Digits", None)
    before.maps["map.json"] = SessionMap({})
    new_session()
    open_files.find_again("guessed")
    assert not open_files.files()
    open_files.find_again(before.secret)
    assert [*open_files.files(), *open_files.files().maps] == ["digits", "map.json"]
    # What the new session closes stays open in the other one, as in a tab that was duplicated.
    open_files.files().clear()
    assert [*before] == ["digits"]
    before.clear()
    open_files.find_again(before.secret)
    assert not [*open_files.files(), *open_files.files().maps]


def test_the_answered_file_of_the_server_is_found_again_instead_of_its_question(
    monkeypatch, tmp_path
):
    rows = "".join(f"0.{i % 9 + 1},0.{i % 7 + 1},{i % 2}\n" for i in range(60))
    file = tmp_path / "asks.csv"
    file.write_text(f"p_a,p_b,died\n{rows}")
    monkeypatch.setenv(open_files.OPEN_VARIABLE, str(file))
    monkeypatch.setattr(open_files.st, "session_state", {})
    asked = open_files.open_file(file.name, file)
    answer = asked.questions[0].readings[0]
    key = open_files.open_file(file.name, file, asked.options.answered(answer)).key
    before = open_files.files()
    monkeypatch.setattr(open_files.st, "session_state", {})
    open_files.open_file(file.name, file)
    assert open_files.nothing_but_unreadable()
    open_files.find_again(before.secret)
    assert (open_files.current_key(), open_files.unreadable_file()) == (key, None)


def test_a_file_that_is_open_in_another_reading_than_that_of_a_link_is_read_as_it_says(monkeypatch):
    rows = "".join(f"0.{i % 9 + 1},{i % 2},{i % 3}\n" for i in range(60))
    monkeypatch.setattr(open_files.st, "session_state", {})
    file = open_files.open_file("p.csv", f"p,label,ward\n{rows}".encode())
    before, key = open_files.files(), file.key
    query = {open_files.READING: '{"groups":["*","!ward"]}'}
    link = open_files.WaitingLink(key, query)
    monkeypatch.setattr(open_files.st, "session_state", {"calviz.wanted": link})
    open_files.find_again(before.secret)
    assert "ward" not in open_files.current().loaded.first.groups
    assert "ward" in before[key].loaded.first.groups


@pytest.mark.parametrize("reading", [{}, {"groups": ["*", "!ward"]}])
def test_the_file_of_the_server_that_an_address_names_stays_read_as_it_says(
    monkeypatch, tmp_path, reading
):
    rows = "".join(f"0.{i % 9 + 1},{i % 2},{i % 3}\n" for i in range(60))
    path = tmp_path / "p.csv"
    path.write_text(f"p,label,ward\n{rows}")
    monkeypatch.setenv(open_files.OPEN_VARIABLE, str(path))
    monkeypatch.setattr(open_files.st, "session_state", {})
    of_tab = ReadingOptions(groups=("*", "!ward") if not reading else None)
    key = open_files.open_file("p.csv", path, of_tab).key
    open_files.open_file("other.csv", b"p,label\n" + b"0.2,0\n0.7,1\n" * 20)
    before = open_files.files()
    # The same tab is loaded again, at another address.
    query = {open_files.DATA: key} | ({open_files.READING: json.dumps(reading)} if reading else {})
    monkeypatch.setattr(open_files.st, "session_state", {})
    monkeypatch.setattr(open_files.st, "query_params", query)
    open_files.follow_address("overview")
    open_files.find_again(before.secret)
    assert open_files.current_key() == key
    assert ("ward" in open_files.current().loaded.first.groups) is not bool(reading)
    assert {*open_files.files()} == {*before}
    # An address without a name says nothing of it: what the tab answered holds.
    monkeypatch.setattr(open_files.st, "session_state", {})
    monkeypatch.setattr(open_files.st, "query_params", {})
    open_files.follow_address("overview")
    open_files.find_again(before.secret)
    assert open_files.files()[key].options == of_tab


@pytest.mark.parametrize("page", ["overview", "classwise"])
def test_a_step_back_reads_the_file_as_its_address_says(monkeypatch, page):
    rows = "".join(f"0.{i % 9 + 1},{i % 2},{i % 3}\n" for i in range(60)).encode()
    monkeypatch.setattr(open_files.st, "session_state", {})
    monkeypatch.setattr(open_files.st, "query_params", query := {})
    open_files.follow_address("overview")
    plain = open_files.open_file("p.csv", b"p,label,ward\n" + rows)
    open_files.follow_address("overview")
    before = dict(query)
    without = ReadingOptions(groups=("*", "!ward"))
    open_files.open_file("p.csv", b"p,label,ward\n" + rows, without)
    open_files.follow_address("overview")
    # Only such a step: the query that comes with a click may be of before the address was written.
    for is_step, where in ((False, "overview"), (True, page)):
        after = dict(query)
        query.clear()
        query.update(before)
        monkeypatch.setattr(open_files, "is_history_step", lambda step=is_step: step)
        open_files.follow_address(where)
        assert (open_files.current().options == plain.options) is is_step
        assert dict(query) == (before if is_step else after)
    assert [*open_files.files()] == [plain.key]


# ---------------------------------------------------------------- caches

#: What belongs to everybody: the bundled samples, and the simulated models that Learn draws.
SHARED = {("open_files.py", "_sample"), ("learn.py", "_figures")}


def _caches():
    for path in sorted((ROOT / "calviz" / "app").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.FunctionDef):
                continue
            for decorator in node.decorator_list:
                if ast.unparse(decorator).startswith(("st.cache_", "kept(")):
                    yield path.name, node.name, ast.unparse(decorator)


def test_every_cache_of_the_app_belongs_to_one_session_and_is_bounded():
    values = list(_caches())
    assert len(values) > 10
    crossing = {
        (file, name)
        for file, name, text in values
        if not text.startswith("kept(")
        and ("scope='session'" not in text or "max_entries=" not in text)
    }
    assert crossing == SHARED


def test_results_of_samples_are_everybodys_and_those_of_files_need_their_session():
    computed = []

    @cached_results(2)
    def results(key, _settings):
        computed.append(key)
        return object()

    def looking_at(sample):
        entry = OpenFile("digits", "Digits", None, sample=sample)
        return Settings(entry, "model", None, Reduction(), 15, "equal-width")

    everybodys = results("a", looking_at(SAMPLES[0]))
    with ThreadPoolExecutor(1) as elsewhere:
        assert elsewhere.submit(results, "a", looking_at(SAMPLES[0])).result() is everybodys
    assert computed == ["a"]
    # Outside of a session there is no place for what is of a file.
    with pytest.raises(StreamlitAPIException, match="session"):
        results("a", looking_at(None))


def test_a_page_that_is_run_alone_starts_through_the_frame():
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=PATIENCE)
    app.switch_page("pages/report.py").run()
    assert not app.exception
    assert " report of " in app.title[0].value


# ---------------------------------------------------------------- what runs out


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "words"),
    [(errno.ENOSPC, "The server's disk is full"), (None, "There is not enough memory for this")],
)
def test_what_runs_out_is_a_sentence_and_what_was_loaded_stays(number, words):
    def script():
        import streamlit as st

        from calviz.app.navigation import boundary

        with boundary():
            number = st.session_state["number"]
            raise MemoryError if number is None else OSError(number, "No space left on device")

    app = app_of(script)
    app.session_state["number"] = number
    app.run()
    assert not app.exception
    (error,) = app.error
    assert error.value == f"{words}; what is loaded stays."


def test_a_job_ends_when_its_browser_stays_away_or_the_server_stops(monkeypatch):
    server = SimpleNamespace(
        is_active_session=lambda session: session in here, state=SimpleNamespace(name="RUNNING")
    )
    here, now = {"me"}, [0.0]
    monkeypatch.setattr(jobs, "get_script_run_ctx", lambda: SimpleNamespace(session_id="me"))
    monkeypatch.setattr(
        jobs, "runtime", SimpleNamespace(exists=lambda: True, get_instance=lambda: server)
    )
    monkeypatch.setattr(jobs, "time", SimpleNamespace(monotonic=lambda: now[0]))
    gone = jobs._abandonment_check()

    def at(seconds):
        now[0] = seconds
        return gone()

    assert not at(10)
    here.clear()
    assert not at(20)
    assert not at(20 + jobs.GRACE)
    here.add("me")  # the line was broken for a while
    assert not at(22 + jobs.GRACE)
    here.clear()
    assert not at(100 + jobs.GRACE)
    assert at(102 + 2 * jobs.GRACE)
    assert not jobs._abandonment_check()()
    server.state.name = "STOPPING"
    assert jobs._abandonment_check()()


def test_the_web_server_lets_an_upload_go_once_it_is_read(monkeypatch):
    manager = MemoryUploadedFileManager("/upload")
    for name in ("a", "b"):
        manager.add_file("me", UploadedFileRec(name, f"{name}.csv", "text/csv", b"content"))
    context = SimpleNamespace(session_id="me", uploaded_file_mgr=manager)
    monkeypatch.setattr(upload, "get_script_run_ctx", lambda: context)
    upload._remove_upload("a")
    assert [file.file_id for file in manager.get_files("me", ["a", "b"])] == ["b"]


# ---- Escaping and number formats


JOINER = "\u2060"


@pytest.mark.slow
@given(st.text(max_size=80))
def test_escaped_text_reads_as_it_was(text):
    shown = html.unescape(md(text)).replace(JOINER, "")
    assert shown == shorten(text, 400)


@given(st.text(max_size=80))
def test_escaped_text_has_no_markdown_in_it(text):
    escaped = md(text)
    left = html.unescape(escaped) if "&" not in escaped else escaped
    for sign in "<>[]()!*_`$\\{}|~":
        assert sign not in left.replace("&#", "")


@pytest.mark.parametrize(
    "hostile", [":material/home:", ":red[x]", ":smile:", "http://example.org", "www.example.org"]
)
def test_notations_that_are_read_after_entities_are_broken_up(hostile):
    assert hostile not in html.unescape(md(hostile))


def test_plain_takes_away_what_cannot_be_seen_and_cuts_what_is_long():
    assert shorten("a\u202eb\u0000c\n\td", 60) == "a b c d"
    assert shorten("x" * 100, 10) == "x" * 9 + "…"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.123456, "0.123"),
        (12.3456, "12.3"),
        (1234.5, "1,234"),
        (-0.5, "−0.500"),
        (0.0, "0.00"),
        (0.00001, "0.0000"),
        (math.nan, "–"),
        (math.inf, "∞"),
    ],
)
def test_numbers_have_three_significant_digits_and_a_true_minus(value, text):
    assert number(value) == text


def test_an_ece_is_written_in_points_with_its_interval_and_noise_floor():
    floor = NoiseFloor(mean=0.0112, q95=0.016, p_value=0.001)
    written = Written(MetricResult("ece", 0.053716, Interval(0.0479, 0.0602), floor))
    assert (written.value, written.unit_words) == ("5.37", "points")
    assert written.interval(written.result.interval) == "95\u00a0% interval 4.79\u00a0to\u00a06.02"
    assert "above noise" in written.noise(tail="upper")
    assert "1.60" in written.noise(tail="upper")


def test_a_signed_metric_shows_its_sign_and_an_accuracy_its_unit():
    assert Written(MetricResult("mcs", 0.0475)).value == "+4.75"
    assert Written(MetricResult("mcs", -0.0475)).value == "−4.75"
    assert Written(MetricResult("mcs", 0.123)).of(0.0004) == "0.0"
    assert Written(MetricResult("accuracy", 0.92345)).value == "92.34\u00a0%"
    assert Written(MetricResult("nll", 0.905)).value == "0.905"


def test_what_has_no_interval_says_so():
    assert "No interval" in Written(MetricResult("ece", 0.1)).interval(None)


def test_sizes():
    assert [file_size(n) for n in (53, 12_345, 200_000_000, 2_500_000_000)] == [
        "53 bytes",
        "12.3 kB",
        "200 MB",
        "2.5 GB",
    ]


def test_shortened_names_stay_apart():
    names = ("x" * 100 + "a", "x" * 100 + "b", "")
    shown = distinct(names)
    assert len(set(shown.values())) == 3
    assert all(len(text) <= 66 for text in shown.values())
