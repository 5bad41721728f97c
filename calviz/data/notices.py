"""Every kind of notice about a file: its code, and what it is about.

A new kind takes the number after the largest; codes are never reused. A notice that belongs to none of the kinds below needs a new one.
"""

from __future__ import annotations

from enum import Enum, unique

from calviz.core.finding import Finding, Severity


@unique
class Notice(Enum):
    """Kinds of notices by what they are about; the value is the stable code.

    Attributes
    ----------
    value : str
        The code ("DATA001").
    title : str
        What its notices are about.
    """

    title: str

    COMMENT_LINES = "DATA001", "Lines skipped at the top of a text file"
    ENCODING = "DATA002", "Text that is not UTF-8"
    SCORE_COLUMNS = "DATA003", "Columns that are taken as the scores, and similar ones that are not"
    COMPLEMENT = "DATA004", "Two columns with complementary forecasts of one event"
    LABEL_COLUMN = "DATA005", "A column that is taken as the label without being named like one"
    ROW_SUMS = "DATA006", "Rows whose probabilities do not sum to 1"
    LABEL_VALUES = "DATA007", "Values of the label that are not simply names or numbers of classes"
    UNUSED_GROUPS = "DATA008", "Columns that are not used as groups"
    HALF_PRECISION = "DATA009", "Scores stored in half precision"
    REPAIRED = "DATA010", "Changes that were asked for"
    CONVERTED = "DATA011", "Scores in percent, logarithms, and numbers kept in single precision"
    LOGS_AND_HINTS = (
        "DATA012",
        "How logs of language models are read, and columns that may be clusters or weights",
    )
    UNUSED_VALUES = (
        "DATA013",
        "Labels without predictions, and columns that cannot be used as times",
    )
    WEIGHT_ZERO = "DATA014", "Rows of weight 0, which neither fit nor judge"
    LEFT_OUT = "DATA015", "Columns and arrays that are left out"

    def __new__(cls, code: str, title: str) -> Notice:
        """Make a kind whose value is its code."""
        kind = object.__new__(cls)
        kind._value_ = code
        kind.title = title
        return kind

    def finding(self, severity: Severity, message: str) -> Finding:
        """Return a notice of this kind: one sentence."""
        return Finding(self.value, severity, message)
