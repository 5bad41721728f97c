"""How numbers, names and tables are written for people: units, decimals, plural forms, shortening, escaping.

``words`` writes numbers and names for sentences, ``gaps`` chooses the decimals of gaps and shares, ``escape`` makes
texts from files safe, with one function per target, and ``export`` writes tables. Nothing here computes, and the content of
sentences is decided elsewhere.
"""
