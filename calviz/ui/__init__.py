"""The app, of which `app.py` and `pages/` are the scripts: the only part of calviz that imports streamlit.

``session`` is what a visitor has open and what runs for them, ``widgets`` is what several pages show, and one folder per
page holds what only that page shows. Numbers come from the library; nothing is computed here.
"""
