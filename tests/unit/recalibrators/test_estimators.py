"""scikit-learn's own checks, on every class, and on presets with code of their own."""

import pytest
from sklearn.utils.estimator_checks import check_estimator

from calviz.core.entry_specs import RECALIBRATORS
from tests.inputs.simulated import simulate

pytestmark = pytest.mark.usefixtures("few_candidates")

#: Presets that run no code but that of the keys beside them.
SAME = ("dirichlet-odir", "temperature+irm", "ets+isotonic")
KEYS = [spec.key for spec in RECALIBRATORS if spec.key not in SAME]
COLUMNS = "labels are column numbers of X: the check passes more classes than columns"
CONTRADICTING = {
    "check_estimators_overwrite_params": COLUMNS,
    "check_estimators_fit_returns_self": COLUMNS,
    "check_readonly_memmap_input": COLUMNS,
    **dict.fromkeys(
        [
            "check_sample_weights_pandas_series",
            "check_sample_weights_not_an_array",
            "check_sample_weights_shape",
            "check_sample_weights_not_overwritten",
        ],
        COLUMNS,
    ),
    "check_sample_weight_equivalence_on_dense_data": "its rows are separated; most methods refuse weights by name",
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Skipping check:sklearn.exceptions.SkipTestWarning")
@pytest.mark.parametrize("key", KEYS)
def test_scikit_learn_checks(key):
    result = check_estimator(
        RECALIBRATORS[key].make(input="logits"),
        expected_failed_checks=CONTRADICTING,
        on_fail=None,
    )
    failed = [f"{c['check_name']}: {c['exception']}" for c in result if c["status"] == "failed"]
    assert not failed, "\n".join(failed)
    assert sum(c["status"] == "passed" for c in result) > 30


@pytest.mark.parametrize("spec", RECALIBRATORS, ids=lambda spec: spec.key)
def test_fit_returns_itself_and_leaves_its_parameters_alone(spec):
    """What the three contradicting checks are about, within the contract."""
    z, y = simulate(120, 3)
    z.flags.writeable = False
    estimator = spec.make(input="logits")
    before = estimator.get_params()
    assert estimator.fit(z, y) is estimator
    assert estimator.get_params() == before
