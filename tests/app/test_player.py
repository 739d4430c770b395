"""The slider over snapshots of a run that grows, with a browser that lags behind."""

from __future__ import annotations

from streamlit.testing.v1 import AppTest


def page() -> None:
    import streamlit as st

    from uwml_core.ui.player import moment_player

    moment_player([(10 * epoch + 9, epoch) for epoch in range(st.session_state["epochs"])])


def grown(app: AppTest, epochs: int) -> AppTest:
    app.session_state["epochs"] = epochs
    return app


def test_who_looks_at_the_newest_goes_on_doing_so_however_late_the_browser_is() -> None:
    app = grown(AppTest.from_function(page), 3).run()
    assert app.select_slider[0].value == "29"
    late = app._tree.get_widget_states()
    for epochs in (4, 5, 6):
        grown(app, epochs)._run(late)
        assert not app.exception
        assert app.select_slider[0].value == f"{10 * epochs - 1}"
        assert "moment" not in app.query_params


def test_a_moment_that_was_chosen_stays_while_the_run_grows() -> None:
    app = grown(AppTest.from_function(page), 3).run()
    app.select_slider[0].set_value("9").run()
    slider = app.select_slider[0].key
    grown(app, 4).run()
    assert (app.select_slider[0].key, app.select_slider[0].value) == (slider, "9")
    assert app.query_params["moment"] == "9"


def test_the_newest_can_be_left_after_the_run_has_grown() -> None:
    app = grown(AppTest.from_function(page), 3).run()
    grown(app, 4).run()
    app.select_slider[0].set_value("29").run()
    grown(app, 5).run()
    assert app.select_slider[0].value == "29"
