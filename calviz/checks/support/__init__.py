"""How the checks are run, and what several of them share. A file here registers no check and yields no finding of its own."""
