"""The verdict: whether these probabilities can be trusted.

`joint_tests` makes all tests on the same redrawn labels, `evidence` adds where and in which direction the error is, and `sentence`
writes it in one sentence; `class_sentences` and `other_view` add what the classes and the other reduction of two classes show.
`plain_words` explains a verdict without technical terms. Checks of miscalibration use the same evidence.
"""
