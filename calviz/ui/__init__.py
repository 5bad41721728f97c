"""The Streamlit app, started by `app.py` and `pages/`: the only part of calviz that imports streamlit.

``session`` holds the state of a visitor's session and its jobs, ``widgets`` holds the parts that several pages show, and
each page has a folder for the parts that only it shows. Numbers come from the library; nothing is computed here.
"""
