"""Long work beside a page."""

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
        job.progress(1, 2, "second")
        job.doing("third")
        return 42

    job = ended(work)
    assert (job.state, job.result, job.done, job.total) == ("finished", 42, 1, 2)
    assert job.words == "third"
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
        job.progress(1, 4, "a_b: fold 1")
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
    assert "1 of 4" in " ".join(m.value for m in app.markdown)
    assert any("fold 1" in c.value and "a_b" not in c.value.lower() for c in app.caption)
    app.button(key="calviz.job.stop").click().run()
    assert app.button(key="calviz.job.stop").disabled
    over.set()
    job = next(iter(app.session_state["calviz.jobs"]["test"].values()))
    job.wait(PATIENCE)
    app.run()
    assert app.text[0].value == "stopped half"


def test_a_step_goes_on_with_what_its_words_count_and_never_back():
    seen = []

    def work(job):
        for words in (
            "names",
            "drawing: 500 of 1,000",
            "permuting: 0 of 999",
            "999 of 999",
            "0 of 0",
        ):
            checkpoint(words)
            seen.append(job.within)
        job.progress(1, 1)
        seen.append(job.within)

    assert ended(work).state == "finished"
    assert seen == [0, 0.5, 0.5, 1, 1, 0]


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


# ---- The one widget of long work: every state that a page may be in, and what a person can do in it


def script_of_long_work():
    import streamlit as st

    from calviz.app.jobs import LongWork

    choice = st.selectbox("Choice", ["one", "two"], key="choice")
    given = st.session_state["given"]
    st.session_state.setdefault("prepared", 0)

    def prepare():
        st.session_state["prepared"] += 1
        return st.session_state["work"]

    work = LongWork(
        "test",
        ("data", choice),
        "Counting <b>",
        prepare,
        "Count",
        button_key="count",
        idle="Not counted yet.",
        out_of_date="Of other choices.",
        **given.get("asked", {}),
    )
    standing = work.draw(**given.get("draw", {}))
    st.text(f"{standing.state} {standing.result}")


def page(work, **given):
    app = app_of(script_of_long_work)
    app.session_state["work"] = work
    app.session_state["given"] = given
    return app.run()


def ended_of_long_work(app):
    """Wait as a browser would, and look again."""
    for job in list(app.session_state["calviz.jobs"]["test"].values()):
        job.wait(PATIENCE)
    app.run()
    assert not app.exception
    return app


def keys(app):
    return [b.key for b in app.button]


def test_it_waits_to_be_asked_for_then_gives_its_result():
    app = page(lambda job: 7)
    assert (app.caption[0].value, app.text[0].value) == ("Not counted yet.", "idle None")
    assert app.session_state["prepared"] == 0
    app.button(key="count").click().run()
    ended_of_long_work(app)
    assert app.text[0].value == "finished 7"
    assert keys(app) == []
    assert app.session_state["prepared"] == 1
    ended_of_long_work(app.run())
    assert app.session_state["prepared"] == 1  # once for all runs of the page


def test_at_once_it_starts_by_itself_and_patience_spares_the_progress():
    app = page(lambda job: 7, draw={"at_once": True, "patience": PATIENCE})
    assert app.text[0].value == "finished 7"


def test_it_is_watched_and_stopped_and_may_be_started_again():
    over = threading.Event()

    def work(job):
        while not (job.stopping() or over.is_set()):
            over.wait(0.01)
        return "half" if job.stopping() else "whole"

    app = page(work, draw={"at_once": True})
    assert app.text[0].value == "running None"
    assert keys(app) == ["calviz.job.stop"]
    app.button(key="calviz.job.stop").click().run()
    ended_of_long_work(app)
    assert app.text[0].value == "stopped half"
    assert app.warning[0].value == "Stopped: what was finished by then is shown."
    over.set()
    app.button(key="count").click().run()
    assert ended_of_long_work(app).text[0].value == "finished whole"
    assert not app.warning


def test_what_was_stopped_with_nothing_says_so():
    def work(job):
        job.stop()

    app = ended_of_long_work(page(work, draw={"at_once": True}))
    assert app.text[0].value == "stopped None"
    assert app.info[0].value == "Stopped before there was a result."
    assert keys(app) == ["count"]


def test_what_failed_says_why_and_may_be_tried_again():
    def work(job):
        raise InputError("there are 3 rows")

    app = ended_of_long_work(page(work, draw={"at_once": True}))
    assert app.text[0].value == "failed None"
    assert "there are 3 rows" in app.error[0].value
    app.session_state["work"] = lambda job: 7
    app.button(key="count").click().run()
    assert ended_of_long_work(app).text[0].value == "finished 7"


def test_a_result_of_other_choices_is_shown_as_such_where_it_is_about_the_same_data():
    app = page(lambda job: 7, asked={"about": ("data",), "always": True})
    app.button(key="count").click().run()
    ended_of_long_work(app)
    assert keys(app) == ["count"]
    assert not app.info
    app.selectbox(key="choice").set_value("two").run()
    assert app.info[0].value == "Of other choices."
    assert app.text[0].value == "finished 7"
    app.session_state["given"] = {"asked": {"about": ("other data",)}}
    app.run()
    assert app.text[0].value == "idle None"


def test_the_button_that_stays_cannot_start_what_runs():
    over = threading.Event()
    app = page(lambda job: over.wait(PATIENCE), asked={"always": True})
    app.button(key="count").click().run()
    assert app.button(key="count").disabled
    over.set()
    assert not ended_of_long_work(app).button(key="count").disabled
    app.session_state["given"] = {"asked": {"always": True, "possible": False}}
    assert app.run().button(key="count").disabled


def test_a_result_that_is_no_answer_is_asked_for_again():
    app = page(lambda job: 7, asked={"answers": lambda result: result == 8}, draw={"at_once": True})
    ended_of_long_work(app)
    assert app.caption[0].value == "Of other choices."
    app.session_state["work"] = lambda job: 8
    app.button(key="count").click().run()
    assert not ended_of_long_work(app).caption
    assert app.text[0].value == "finished 8"
