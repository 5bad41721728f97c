"""The only room that imports streamlit.

`diagnose_*`, `recalibrate_*`, `decide_*` belong to one page; the rest is shared. `learn` and
`before_after` are alone so that the first page does not load them. What runs in the browser, and its
styles, lie beside: `browser.js`, `page.css`, ...
"""
