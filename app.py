"""The dashboard: `streamlit run app.py`."""

from __future__ import annotations

import streamlit as st
from starlette.middleware import Middleware

from calviz.app import frame, navigation

if __name__ == "__main__":  # run as a page's script, such as by AppTest
    frame.draw()
else:  # imported by the server: the script is not this file, beside which streamlit would take `pages` for all pages
    middleware = [Middleware(navigation.preloading)]
    app = st.App(frame.__file__, lifespan=navigation.serving, middleware=middleware)
