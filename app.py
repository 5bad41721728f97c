"""The dashboard: `streamlit run app.py`."""

from __future__ import annotations

import streamlit as st

from calviz.app import frame, navigation

if __name__ == "__main__":  # run as a page's script, such as by AppTest
    frame.draw()
else:  # imported by the server: the script is not this file, beside which streamlit would take `pages` for all pages
    app = st.App(frame.__file__, lifespan=navigation.serving)
