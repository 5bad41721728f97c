import threading

import pytest

from calviz.app.jobs import Job
from calviz.core.blocks import Stopped, checkpoint
from calviz.core.errors import InputError
from tests.app.pages import PATIENCE, app_of


def ended(work):
    job = Job(("key",), "Working", work)
    job.start()
    job.wait(PATIENCE)
    assert not job.running
    return job


def test_a_job_gives_its_result_and_says_how_far_it_came():
    def work(job):
        job.step("first", "done", "0.1 s")
        job.progress(1, 2, "second")
        return 42

    job = ended(work)
    assert (job.state, job.result, job.done, job.total) == ("finished", 42, 1, 2)
    assert job.steps["first"].words == "0.1 s"
    assert job.seconds == job.seconds < PATIENCE


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (InputError("there are 3 rows"), "there are 3 rows."),
        (MemoryError(), "There is not enough memory for it."),
        (KeyError("secret"), "Something went wrong that calviz did not foresee"),
    ],
)
def test_what_goes_wrong_is_a_sentence(error, words):
    def work(job):
        raise error

    job = ended(work)
    assert (job.state, job.result) == ("failed", None)
    assert job.error.startswith(words)
    assert "secret" not in job.error


def test_a_job_stops_at_its_next_checkpoint():
    at_work = threading.Event()

    def work(job):
        while True:
            checkpoint("turning")
            at_work.set()

    job = Job((), "Turning", work)
    job.start()
    assert at_work.wait(PATIENCE)
    job.stop()
    job.wait(PATIENCE)
    assert (job.state, job.words) == ("stopped", "turning")


def test_what_was_finished_when_it_was_stopped_is_kept():
    def work(job):
        job.stop()
        return "half" if job.stopping() else "whole"

    job = ended(work)
    assert (job.state, job.result) == ("stopped", "half")


def test_a_job_ends_with_its_session():
    left = threading.Event()

    def work(job):
        while True:
            checkpoint()

    job = Job((), "Turning", work, is_abandoned=left.is_set)
    job.start()
    left.set()
    job.wait(PATIENCE)
    assert job.state == "stopped"


def script():
    import streamlit as st

    from calviz.app import jobs

    st.toggle("Unrelated", key="unrelated")
    if st.button("Go", key="go"):
        jobs.start("test", ("a",), "Counting <b>", st.session_state["work"])
    job = jobs.latest("test")
    if job is not None:
        jobs.draw_job(job)
        st.text(f"{job.state} {job.result}")


def test_a_page_watches_a_job_stops_it_and_keeps_its_result():
    running, over = threading.Event(), threading.Event()

    def work(job):
        job.step("a_b", "running", "fold 1")
        job.progress(1, 4)
        running.set()
        over.wait(PATIENCE)
        return "half" if job.stopping() else "whole"

    app = app_of(script)
    app.session_state["work"] = work
    app.run()
    app.button(key="go").click().run()
    assert running.wait(PATIENCE)
    app.toggle(key="unrelated").set_value(True).run()
    assert not app.exception
    shown = " ".join(m.value for m in app.markdown)
    assert "1 of 4" in shown
    assert "fold 1" in shown
    assert "<b>" not in shown
    app.button(key="calviz.job.stop").click().run()
    assert app.button(key="calviz.job.stop").disabled
    over.set()
    job = next(iter(app.session_state["calviz.jobs"]["test"].values()))
    job.wait(PATIENCE)
    app.run()
    assert app.text[0].value == "stopped half"


def test_a_new_job_of_a_place_stops_the_old_one():
    def one(job):
        while True:
            checkpoint()

    app = app_of(script)
    app.session_state["work"] = one
    app.run()
    app.button(key="go").click().run()
    book = app.session_state["calviz.jobs"]["test"]
    (first,) = book.values()
    app.session_state["work"] = lambda job: 7
    app.button(key="go").click().run()
    first.wait(PATIENCE)
    assert first.state == "stopped"
    assert list(book) == [("a",)]
    book["a",].wait(PATIENCE)
    app.run()
    assert app.text[0].value == "finished 7"


def test_few_results_of_a_place_are_kept():
    def many():
        import streamlit as st

        from calviz.app import jobs

        for i in range(6):
            jobs.start("test", (str(i),), "Counting", lambda job, i=i: i).wait()
        st.text(" ".join(str(jobs.find("test", (str(i),)) is not None) for i in range(6)))

    app = app_of(many).run()
    assert app.text[0].value == "False False True True True True"


def test_stopped_is_a_sentence():
    assert str(Stopped()) == "stopped before it was finished."
