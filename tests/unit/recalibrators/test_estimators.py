"""scikit-learn's own checks, on every class, and on presets with code of their own."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from calviz.specs.recalibrator import RECALIBRATORS

#: Presets that run no code but that of the keys beside them.
SAME = ("dirichlet-odir", "temperature+irm", "ets+isotonic")
KEYS = [spec.key for spec in RECALIBRATORS if spec.key not in SAME]
COLUMNS = "labels are column numbers of X: the check passes more classes than columns"
#: The checks fit each of them several hundred times.
QUICK = {"auto": {"folds": 2}}
CONTRADICTING = {
    "check_estimators_overwrite_params": COLUMNS,
    "check_estimators_fit_returns_self": COLUMNS,
    "check_readonly_memmap_input": COLUMNS,
}


@pytest.mark.slow
@parametrize_with_checks(
    [RECALIBRATORS[key].make(input="logits", **QUICK.get(key, {})) for key in KEYS],
    expected_failed_checks=lambda estimator: CONTRADICTING,
)
def test_scikit_learn_check(estimator, check):
    check(estimator)


@pytest.mark.parametrize("spec", RECALIBRATORS, ids=lambda spec: spec.key)
def test_fit_returns_itself_and_leaves_its_parameters_alone(spec, simulated):
    """What the three contradicting checks are about, within the contract."""
    z, y = simulated(120, 3)
    z.flags.writeable = False
    estimator = spec.make(input="logits")
    before = estimator.get_params()
    assert estimator.fit(z, y) is estimator
    assert estimator.get_params() == before
