"""The only room that imports streamlit.

`diagnose_*`, `recalibrate_*`, `decide_*` belong to one page; the rest is shared. `learn` is
alone so that the first page does not load it. What runs in the browser, and its
styles, lie beside: `browser.js`, `page.css`, ...
"""
