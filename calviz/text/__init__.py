"""How numbers, names and tables are written for people: units, decimals, plural forms, shortening, escaping.

``words`` has numbers and names in sentences, ``metric_values`` the values of metrics in their units, ``escape`` makes texts from
files safe, one function per target, and ``export`` writes tables. What is said is decided by the room that knows it; nothing
here computes.
"""
