"""Maps that earlier versions saved: parameters that were added since are missing in them."""

import json

import numpy as np
import pytest

from calviz.core.entry_specs import RECALIBRATORS
from calviz.core.errors import InputError
from calviz.recalibrators.base import BaseRecalibrator, load_map
from calviz.recalibrators.maps import earlier_values
from tests.inputs.simulated import simulate, softmax

pytestmark = pytest.mark.usefixtures("few_candidates")

#: Parameters in the oldest maps of each method. Lines are never changed; a parameter that is missing here needs `added_later`.
OLDEST = {
    "identity": "input",
    "auto": "caution combine floor folds input",
    "affine": "floor input",
    "beta": "floor input",
    "cwmcs-ts": "floor input normalize temperature",
    "dirichlet": "floor folds input intercept l2 max_seconds off_diagonal regularisation",
    "dirichlet-odir": "floor folds input intercept l2 max_seconds off_diagonal regularisation",
    "ets": "floor input joint loss",
    "linear": "floor input",
    "logit-spline": "floor folds input knots own_rows strength",
    "matrix": "floor folds input intercept l2 max_seconds off_diagonal regularisation",
    "matrix-odir": "floor folds input intercept l2 max_seconds off_diagonal regularisation",
    "platt": "floor input",
    "quadratic": "floor input",
    "sms": "floor input max_seconds strength",
    "svs": "floor input strength",
    "temperature": "floor input loss",
    "temperature-mse": "floor input loss",
    "vector": "floor input",
    "bbq": "input",
    "centered-isotonic": "input smooth",
    "gp": "floor inducing input max_pairs",
    "histogram": "bins input scheme",
    "irm": "epsilon input",
    "isotonic": "input",
    "spline": "bounded floor input knots mode r run_out",
    "spline-classwise": "bounded input knots run_out",
    "venn-abers": "input",
    "ets+isotonic": "first floor input second",
    "scaling-binning": "base bins floor input",
    "temperature+irm": "first floor input second",
    "temperature+isotonic": "first floor input second",
}


@pytest.mark.parametrize("key", OLDEST)
def test_the_oldest_maps_are_read(key):
    z, y = simulate(60, 3, temperature=2.0, seed=4)
    made = RECALIBRATORS[key].make_with(input="probabilities", cap=False)
    record = json.loads(json.dumps(made.fit(softmax(z), y).to_dict()))
    before = load_map(record).transform(softmax(z))
    record["parameters"] = {name: record["parameters"][name] for name in OLDEST[key].split()}
    np.testing.assert_array_equal(load_map(record).transform(softmax(z)), before)


class First(BaseRecalibrator):
    """A method of a first version: moves all rows half of the way to the uniform distribution."""

    key = "moved"
    needs = "probabilities"
    fitted = ("share_",)

    def __init__(self, *, input="probabilities"):
        self.input = input

    def _fit(self, scores, labels):
        self.share_ = 0.5

    def _apply(self, block):
        return block * (1 - self.share_) + self.share_ / block.shape[1]


class Second(First):
    """The same method of a second version: how far it moves can be limited, and is by default."""

    added_later = earlier_values(most=1.0)

    def __init__(self, *, most=0.25, input="probabilities"):
        self.most = most
        super().__init__(input=input)

    def _apply(self, block):
        share = min(self.share_, self.most)
        return block * (1 - share) + share / block.shape[1]


class Careless(Second):
    """As Second, without saying what older maps are read with."""

    added_later = earlier_values()


P, Y = np.array([[0.8, 0.2], [0.4, 0.6]]), [0, 1]


def test_a_parameter_that_was_added_has_its_earlier_value_in_older_maps():
    older = First().fit(P, Y).to_dict()
    # Half of the way from 0.8 to 0.5 is 0.65; the new default would stop at 0.725.
    assert Second.from_dict(older).transform(P)[0, 0] == pytest.approx(0.65)
    newer = Second().fit(P, Y)
    assert newer.transform(P)[0, 0] == pytest.approx(0.725)
    assert Second.from_dict(newer.to_dict()).transform(P)[0, 0] == pytest.approx(0.725)


def test_without_it_older_maps_are_refused():
    with pytest.raises(InputError, match="its parameters must be input, most"):
        Careless.from_dict(First().fit(P, Y).to_dict())


def test_a_parameter_that_the_method_does_not_have_is_refused():
    record = RECALIBRATORS["temperature"].make().fit(P, Y).to_dict()
    record["parameters"]["cap"] = True
    with pytest.raises(InputError, match="the map of 'temperature' is damaged: its parameters"):
        load_map(record)
