"""The Streamlit app, started by `app.py` and `pages/`: the only part of calviz that imports streamlit.

``session`` holds the state of a visitor's session and its jobs, ``widgets`` holds the parts that several pages show,
``selection`` the rows selected in figures and ``pinned`` the state pinned for comparison; a page with parts that only it shows
has a folder for them. Numbers come from the library; nothing is computed here.
"""
