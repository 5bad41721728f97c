"""What the numbers of one set of probabilities mean: checks, which yield findings, their joint tests, the sentence; `analysis` is the way in (evaluate, verdict, explain, conventions, audit, scorer).

Not here: two sets of probabilities.
"""
