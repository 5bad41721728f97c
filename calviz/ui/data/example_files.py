"""Example files to start from, one for each layout that can be read."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Template:
    """A small CSV file that shows a layout."""

    key: str
    title: str
    text: str

    @property
    def file(self) -> str:
        """File name of the download."""
        return f"calviz-template-{self.key}.csv"


TEMPLATES = (
    Template(
        "probabilities",
        "Probabilities of all classes, label as a class name",
        "label,p_cat,p_dog,p_fox\ncat,0.81,0.12,0.07\ndog,0.25,0.55,0.2\nfox,0.1,0.3,0.6\n",
    ),
    Template(
        "everything",
        "The same with identifiers, splits and a group to slice by",
        "id,split,hospital,label,p_cat,p_dog,p_fox\n"
        "a1,calibration,north,cat,0.81,0.12,0.07\n"
        "a2,calibration,south,fox,0.15,0.25,0.6\n"
        "a3,test,north,dog,0.25,0.55,0.2\n"
        "a4,test,south,fox,0.1,0.3,0.6\n",
    ),
    Template(
        "logits",
        "Logits of all classes, label as a class index from 0",
        "label,logit_0,logit_1,logit_2\n0,2.31,-0.4,-1.2\n1,0.2,1.7,0.1\n2,-1.1,0.3,1.9\n",
    ),
    Template(
        "binary",
        "Two classes, one column with the probability of class 1",
        "label,p\n1,0.92\n0,0.13\n1,0.64\n0,0.41\n",
    ),
    Template(
        "confidence",
        "Confidence only: the top probability and whether it was right",
        "confidence,correct\n0.97,1\n0.83,1\n0.71,0\n0.55,1\n",
    ),
    Template(
        "predicted",
        "Confidence only, with the true and the predicted class",
        "confidence,true_label,pred_label\n0.97,cat,cat\n0.83,dog,dog\n0.71,fox,dog\n0.55,cat,cat\n",
    ),
    Template(
        "models",
        "Several models on the same rows",
        "label,forest:cat,forest:dog,logistic:cat,logistic:dog\n"
        "cat,0.9,0.1,0.7,0.3\ndog,0.2,0.8,0.35,0.65\ncat,0.6,0.4,0.45,0.55\n",
    ),
)
