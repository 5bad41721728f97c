"""The part of the page Learning curve: the choices, the job and its curves."""
