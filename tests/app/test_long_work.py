"""The one widget of long work: every state that a page may be in, and what a person can do in it."""

import threading

from calviz.core.errors import InputError
from tests.app.pages import PATIENCE, app_of


def script():
    import streamlit as st

    from calviz.app import jobs
    from calviz.app.jobs import Button, LongWork, StateWords

    choice = st.selectbox("Choice", ["one", "two"], key="choice")
    given = st.session_state["given"]
    st.session_state.setdefault("prepared", 0)

    def prepare():
        st.session_state["prepared"] += 1
        return st.session_state["work"]

    work = LongWork("test", ("data", choice), "Counting <b>", prepare, **given.get("asked", {}))
    standing = jobs.draw_long_work(
        work,
        Button("Count", key="count", **given.get("button", {})),
        StateWords("Not counted yet.", out_of_date="Of other choices."),
        **given.get("draw", {}),
    )
    st.text(f"{standing.state} {standing.result}")


def page(work, **given):
    app = app_of(script)
    app.session_state["work"] = work
    app.session_state["given"] = given
    return app.run()


def ended(app):
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
    ended(app)
    assert app.text[0].value == "finished 7"
    assert keys(app) == []
    assert app.session_state["prepared"] == 1
    ended(app.run())
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
    ended(app)
    assert app.text[0].value == "stopped half"
    assert app.warning[0].value == "Stopped: what was finished by then is shown."
    over.set()
    app.button(key="count").click().run()
    assert ended(app).text[0].value == "finished whole"
    assert not app.warning


def test_what_was_stopped_with_nothing_says_so():
    def work(job):
        job.stop()

    app = ended(page(work, draw={"at_once": True}))
    assert app.text[0].value == "stopped None"
    assert app.info[0].value == "Stopped before there was a result."
    assert keys(app) == ["count"]


def test_what_failed_says_why_and_may_be_tried_again():
    def work(job):
        raise InputError("there are 3 rows")

    app = ended(page(work, draw={"at_once": True}))
    assert app.text[0].value == "failed None"
    assert "there are 3 rows" in app.error[0].value
    app.session_state["work"] = lambda job: 7
    app.button(key="count").click().run()
    assert ended(app).text[0].value == "finished 7"


def test_a_result_of_other_choices_is_shown_as_such_where_it_is_about_the_same_data():
    app = page(lambda job: 7, asked={"about": ("data",)}, button={"always": True})
    app.button(key="count").click().run()
    ended(app)
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
    app = page(lambda job: over.wait(PATIENCE), button={"always": True})
    app.button(key="count").click().run()
    assert app.button(key="count").disabled
    over.set()
    assert not ended(app).button(key="count").disabled
    app.session_state["given"] = {"button": {"always": True, "possible": False}}
    assert app.run().button(key="count").disabled


def test_a_result_that_is_no_answer_is_asked_for_again():
    app = page(lambda job: 7, asked={"answers": lambda result: result == 8}, draw={"at_once": True})
    ended(app)
    assert app.caption[0].value == "Of other choices."
    app.session_state["work"] = lambda job: 8
    app.button(key="count").click().run()
    assert not ended(app).caption
    assert app.text[0].value == "finished 8"
