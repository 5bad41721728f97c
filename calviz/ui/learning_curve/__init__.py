"""The part of the page Learning curve: what is fitted, and the job that does it."""
