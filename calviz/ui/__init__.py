"""What the pages are built from: the only part of calviz, with `app.py` and `pages/`, that imports streamlit."""
