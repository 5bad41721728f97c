"""Small files that are right but borderline: every page and command has a value or a reason for them."""

FILES = {
    "sum to 0.999": b"label,p_a,p_b\na,0.809,0.19\nb,0.249,0.75\n",
    "one row": b"label,p_a,p_b\na,0.81,0.19\n",
    "one class": b"label,p_a,p_b\na,0.81,0.19\na,0.7,0.3\na,0.6,0.4\n",
    "confidence": b"confidence,correct\n0.9,1\n0.7,0\n0.8,1\n",
    "all certain": b"label,p_a,p_b\na,1,0\nb,1,0\n",
    "exact zeros and ones": b"label,p_a,p_b,p_c\na,1,0,0\nb,0,1,0\nc,0.5,0.5,0\n",
    "a class without rows": b"label,p_a,p_b,p_c\na,0.7,0.2,0.1\nb,0.2,0.6,0.2\na,0.1,0.8,0.1\n",
    "all scores equal": b"label,p_a,p_b\n" + b"a,0.7,0.3\nb,0.7,0.3\n" * 6,
    "two classes in two columns": b"label,p_0,p_1\n1,0.2,0.8\n0,0.7,0.3\n1,0.6,0.4\n",
    "two classes in one column": b"label,probability\n1,0.8\n0,0.3\n1,0.4\n",
    "one confidence": b"confidence,correct\n0.9,1\n",
    "a thousand classes": b"label,"
    + b",".join(b"p_%d" % k for k in range(1_000))
    + b"".join(b"\n%d," % i + b",".join([b"0.001"] * 1_000) for i in range(3)),
}
