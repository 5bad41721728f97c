"""What holds for every recalibrator."""

import json
from dataclasses import replace

import numpy as np
import pytest
from sklearn.utils.estimator_checks import check_estimator

from calviz.core.entry_specs import RECALIBRATOR_FAMILIES, RECALIBRATORS, recalibrator
from calviz.core.errors import CalvizError, InputError, OptionError
from calviz.recalibrators.base import BaseRecalibrator, load_map
from tests.inputs.simulated import draw_labels, simulate, softmax

pytestmark = pytest.mark.usefixtures("few_candidates")


# ---- What every recalibrator promises


KEYS = RECALIBRATORS.keys()
EXTRA = ["vector+spline-classwise", "platt+histogram", "beta+bbq"]
every = pytest.mark.parametrize("key", KEYS)
FOR_CLASSES = [k for k in KEYS if k not in ("gp",)]


def make(key, **options):
    return RECALIBRATORS[key].make(**options)


def probabilities(n=400, k=4, seed=1, dtype=np.float64, temperature=2.0):
    z, y = simulate(n, k, temperature=temperature, seed=seed)
    return softmax(z).astype(dtype), y


def test_the_names_of_the_command_line_are_all_there():
    names = """identity platt temperature temperature-mse vector matrix matrix-odir dirichlet
        dirichlet-odir beta histogram isotonic irm bbq ets temperature+isotonic temperature+irm
        ets+isotonic spline spline-classwise gp cwmcs-ts scaling-binning linear affine quadratic
        centered-isotonic venn-abers logit-spline svs sms auto""".split()
    assert set(names) <= set(KEYS)  # once there, a key stays
    assert KEYS[0] == "identity"


def test_it_is_described():
    for spec in RECALIBRATORS:
        assert spec.label, spec.key
        assert len(spec.summary) > 30, spec.key
        assert spec.reference, spec.key
        assert spec.formula, spec.key
        assert spec.family in RECALIBRATOR_FAMILIES, spec.key
        assert "input" not in {p.name for p in spec.parameters}, spec.key


@pytest.mark.parametrize("key", [*KEYS, *EXTRA])
@pytest.mark.parametrize(("dtype", "k"), [(np.float64, 2), (np.float32, 4)])
def test_gives_distributions_of_the_same_type(key, dtype, k):
    p, y = probabilities(k=k, dtype=dtype)
    before = p.copy()
    out = make(key).fit(p, y).transform(p)
    assert out.dtype == dtype
    assert out.shape == p.shape
    assert (out >= 0).all()
    np.testing.assert_allclose(out.sum(axis=1), 1, atol=1e-6 if dtype == np.float32 else 1e-12)
    np.testing.assert_array_equal(p, before)


@pytest.mark.slow
@pytest.mark.parametrize("key", [*KEYS, *EXTRA])
@pytest.mark.parametrize(("given", "k"), [("logits", 2), ("logits", 4), ("probabilities", 4)])
def test_the_snippet_does_the_same(key, given, k):
    z, y = simulate(300, k, temperature=1.7, seed=3)
    x = z.astype(np.float32) if given == "logits" else softmax(z).astype(np.float32)
    fitted = make(key, input=given).fit(x, y)
    new = x[::-1] if given == "logits" else softmax(np.asarray(x[::-1] * 1.01))
    if given == "probabilities":
        new = np.concatenate([x, new, np.eye(k)]).astype(np.float32)
    program = {}
    exec(compile(fitted.snippet(), "snippet", "exec"), program)
    np.testing.assert_allclose(program["recalibrate"](new), fitted.transform(new), atol=1e-6)
    imports = [line for line in fitted.snippet().splitlines() if "import" in line]
    assert imports == ["import numpy as np"]


@pytest.mark.parametrize("given", ["logits", "probabilities"])
def test_the_snippet_takes_the_scores_of_one_of_two_classes(given):
    z, y = simulate(300, 2, temperature=1.7, seed=3)
    two = np.stack([0 * z[:, 0], z[:, 1] - z[:, 0]], axis=1)
    x = two if given == "logits" else softmax(z)
    fitted, program = make("temperature", input=given).fit(x, y), {}
    exec(compile(fitted.snippet(), "snippet", "exec"), program)
    one = program["recalibrate"](x[:, 1])
    np.testing.assert_allclose(one, fitted.transform(x)[:, 1], atol=1e-9)


JUMPING = [k for k in (*KEYS, *EXTRA) if "+" in k or RECALIBRATORS[k].family == "Non-parametric"]


@pytest.mark.parametrize("key", JUMPING)
def test_no_jump_lies_between_equal_scores_that_were_rounded_differently(key):
    # Rows of the same few logits in another order: their probabilities are equal but for rounding.
    rng = np.random.default_rng(0)
    z = rng.integers(-3, 4, size=(300, 4)) / 2.0
    p = softmax(z)
    y = draw_labels(p, rng)
    fitted = make(key, input="logits").fit(z[:150], y[:150])
    out = fitted.transform(z)
    program = {}
    exec(compile(fitted.snippet(), "snippet", "exec"), program)
    np.testing.assert_allclose(program["recalibrate"](z), out, atol=1e-6)
    # What becomes of a row does not depend on the others, nor on the order of its classes' sums.
    alone = np.concatenate([fitted.transform(z[i : i + 1]) for i in range(0, 300, 9)])
    np.testing.assert_allclose(alone, out[::9], atol=1e-6)


@pytest.mark.parametrize("key", [*KEYS, *EXTRA])
def test_the_map_goes_through_json(key):
    for k in (2, 3):
        p, y = probabilities(k=k)
        fitted = make(key).fit(p, y)
        record = json.loads(json.dumps(fitted.to_dict(), allow_nan=False))
        assert record["calviz_map"] == 1
        assert record["method"] == fitted.key
        restored = load_map(record)
        assert type(restored) is type(fitted)
        np.testing.assert_array_equal(restored.transform(p), fitted.transform(p))
        assert restored.describe() == fitted.describe()
        assert restored.warnings_ == fitted.warnings_


def test_a_map_that_is_none_is_refused():
    record = make("temperature").fit(*probabilities()).to_dict()
    for broken in (
        {},
        [],
        {**record, "calviz_map": 99},
        {**record, "method": "nothing"},
        {**record, "fitted": {}},
        {**record, "parameters": {"evil": 1}},
    ):
        with pytest.raises(CalvizError):
            load_map(broken)


@every
def test_row_order_is_of_no_matter(key):
    p, y = probabilities(n=300, k=3)
    order = np.random.default_rng(0).permutation(300)
    if key.endswith("-odir"):
        pytest.skip("the folds of cross-validation follow the rows")
    a = make(key).fit(p, y).transform(p)
    b = make(key).fit(p[order], y[order]).transform(p)
    np.testing.assert_allclose(a, b, atol=2e-5)


@pytest.mark.parametrize("key", FOR_CLASSES)
def test_names_of_classes_are_of_no_matter(key):
    p, y = probabilities(n=300, k=3)
    turned = np.array([2, 0, 1])
    if key.endswith("-odir"):
        pytest.skip("the folds of cross-validation follow the classes")
    a = make(key).fit(p, y).transform(p)
    b = make(key).fit(p[:, turned], np.argsort(turned)[y]).transform(p[:, turned])
    np.testing.assert_allclose(a[:, turned], b, atol=2e-5)


@every
def test_a_constant_added_to_a_row_of_logits_is_of_no_matter(key):
    if key in ("vector", "matrix", "matrix-odir", "cwmcs-ts", "auto"):
        pytest.skip("these are different models of logits and of their log-probabilities")
    z, y = simulate(300, 3, temperature=1.5)
    shifted = z + np.random.default_rng(1).normal(size=(300, 1))
    a = make(key, input="logits").fit(z, y).transform(z)
    b = make(key, input="logits").fit(shifted, y).transform(shifted)
    np.testing.assert_allclose(a, b, atol=1e-6)


@pytest.mark.parametrize(
    "key",
    ["temperature", "temperature-mse", "vector", "matrix", "matrix-odir", "cwmcs-ts", "svs", "sms"],
)
def test_logits_times_100_give_the_same_probabilities(key):
    z, y = simulate(400, 3, temperature=1.5)
    a = make(key, input="logits").fit(z, y)
    b = make(key, input="logits").fit(100 * z, y)
    np.testing.assert_allclose(b.transform(100 * z), a.transform(z), atol=2e-6)
    if hasattr(a, "temperature_"):
        assert b.temperature_ == pytest.approx(100 * a.temperature_, rel=1e-6)


@pytest.mark.parametrize("key", [k for k in KEYS if RECALIBRATORS[k].accuracy_preserving])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_predicted_classes_stay_where_that_is_promised(key, dtype):
    p, y = probabilities(n=500, k=5, dtype=dtype)
    # Ties, near-ties and saturated rows are where rounding decides.
    p[:40] = np.round(p[:40], 1)
    p[:40] /= p[:40].sum(axis=1, keepdims=True)
    p[40:60] = [0.3, 0.3, 0.2, 0.1, 0.1]
    p[60:80, :] = [0.2, np.nextafter(dtype(0.2), dtype(1)), 0.2, 0.2, 0.2]
    p[80:100] = np.eye(5)[np.arange(20) % 5]
    out = make(key).fit(p, y).transform(p)
    np.testing.assert_array_equal(out.argmax(axis=1), p.argmax(axis=1))


@every
def test_exact_zeros_and_ones_are_taken(key):
    for k in (2, 3):
        p, y = probabilities(n=300, k=k)
        p[:50] = np.eye(k)[y[:50]]
        p[50:55] = np.eye(k)[(y[50:55] + 1) % k]
        out = make(key).fit(p, y).transform(p)
        assert np.isfinite(out).all()
        np.testing.assert_allclose(out.sum(axis=1), 1)


@every
def test_a_class_without_calibration_rows_is_said_and_survives(key):
    p, y = probabilities(n=400, k=4)
    fitted = make(key).fit(p[y != 2], y[y != 2])
    out = fitted.transform(p)
    assert np.isfinite(out).all()
    np.testing.assert_allclose(out.sum(axis=1), 1)
    turned = fitted.transform(p[:, ::-1])[:, ::-1]
    one_map_for_all_classes = np.allclose(turned, out, atol=1e-6)
    if not one_map_for_all_classes:
        assert any("1 of 4 classes have no calibration rows" in w for w in fitted.warnings_)
        # Nothing was learned about the class, but it is not ruled out.
        assert out[:, 2].max() > 0.05


@pytest.mark.parametrize("key", [k for k in KEYS if k != "identity"])
def test_one_class_is_refused_with_a_sentence(key):
    for k in (2, 3):
        p, _ = probabilities(n=50, k=k)
        with pytest.raises(InputError, match="nothing to fit"):
            make(key).fit(p, np.zeros(50, dtype=int))


@every
def test_separable_rows_have_an_answer(key, recwarn):
    y = np.repeat(np.arange(3), 40)
    rng = np.random.default_rng(0)
    p = softmax(4 * np.eye(3)[y] + rng.normal(scale=0.1, size=(120, 3)))
    fitted = make(key).fit(p, y)
    out = fitted.transform(p)
    assert np.isfinite(out).all()
    np.testing.assert_array_equal(out.argmax(axis=1), y)
    # The rows do not support more certainty.
    assert out.min() > 1e-20
    # Nothing goes to the console: what there is to say is in the attribute.
    assert not recwarn.list
    if key in ("temperature", "affine", "beta", "vector", "matrix", "dirichlet"):
        assert fitted.warnings_


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([[0.5, np.nan]], "NaN"),
        ([[0.5, np.inf]], "inf"),
        ([[0.7, 0.7]], "sum to 1.4"),
        ([[1.5, -0.5]], "not a probability"),
    ],
)
def test_scores_that_are_none_are_refused(rows, message):
    p, y = probabilities(n=20, k=2)
    fitted = make("temperature").fit(p, y)
    with pytest.raises(ValueError, match=message):
        fitted.transform(np.array(rows))


def test_labels_that_are_none_are_refused():
    p, y = probabilities(n=20, k=2)
    for labels, message in [
        (y + 1, "X has 2 columns"),
        (y + 0.5, "not a whole number"),
        (y[:-1], "20 rows of scores but 19 labels"),
        (np.array(["a", "b"] * 10), "Unknown label type"),
    ]:
        with pytest.raises(InputError, match=message):
            make("temperature").fit(p, labels)


@pytest.mark.parametrize(
    ("key", "options"),
    [
        ("temperature", {"loss": "hinge"}),
        ("temperature", {"floor": 2.0}),
        ("temperature", {"input": "percent"}),
        ("histogram", {"bins": 0}),
        ("histogram", {"bins": True}),
        ("spline", {"mode": "within-top-r", "r": 4}),
        ("dirichlet-odir", {"off_diagonal": -1.0}),
        ("dirichlet-odir", {"folds": 1}),
        ("scaling-binning", {"base": "isotonic"}),
        ("cwmcs-ts", {"temperature": 0.0}),
    ],
)
def test_parameters_that_are_not_allowed_are_refused(key, options):
    with pytest.raises(OptionError):
        make(key, **options).fit(*probabilities())


@pytest.mark.parametrize("name", ["isotonic+temperature", "a+b", "temperature+", "a+b+c", "+"])
def test_compositions_that_are_none_are_refused(name):
    with pytest.raises(OptionError):
        RECALIBRATORS[name]
    assert name not in RECALIBRATORS


def test_a_composition_is_its_parts_one_after_the_other():
    p, y = probabilities()
    first = make("vector").fit(p, y)
    q = first.transform(p)
    # The second one is fitted in single precision, and applied in double.
    second = make("isotonic").fit(q.astype(np.float32), y)
    whole = make("vector+isotonic").fit(p, y)
    np.testing.assert_allclose(whole.transform(p), second.transform(q), atol=1e-9)


def test_every_class_is_a_recalibrator():
    assert all(isinstance(spec.make(), BaseRecalibrator) for spec in RECALIBRATORS)


def test_a_class_knows_what_its_entry_says():
    for spec in RECALIBRATORS:
        if "+" not in spec.key:
            method = spec.make()
            assert method.needs == spec.needs
            assert method.accuracy_preserving == spec.accuracy_preserving
            assert spec.key == method.key or spec.key.startswith(f"{method.key}-")


def test_the_decorator_nearest_to_a_class_names_it_unless_its_body_does(monkeypatch):
    monkeypatch.setattr(RECALIBRATORS, "_entries", {})
    entry = {"label": "", "family": "Parametric", "reference": "", "formula": ""}
    entry |= {"accuracy_preserving": True}

    @recalibrator(key="b", needs="logits", preset={"p": 2}, **entry)
    @recalibrator(key="a", needs="probabilities", **entry)
    class Method(BaseRecalibrator):
        pass

    @recalibrator(key="c", needs="log-probabilities", **entry)
    class Derived(Method):
        accuracy_preserving = False

    assert (Method.key, Method.needs, Method.accuracy_preserving) == ("a", "probabilities", True)
    assert (Derived.key, Derived.needs) == ("c", "log-probabilities")
    assert not Derived.accuracy_preserving
    assert set(RECALIBRATORS._entries) == {"a", "b", "c"}


@pytest.mark.parametrize("key", ["isotonic", "venn-abers", "irm", "scaling-binning"])
def test_saving_a_map_does_not_change_it(key, monkeypatch):
    # Another thread may be applying it at the same time.
    p, y = probabilities()
    fitted = make(key).fit(p, y)

    def refuse(self, name, value):
        raise AssertionError(f"'{name}' was set")

    monkeypatch.setattr(BaseRecalibrator, "__setattr__", refuse, raising=False)
    assert fitted.to_dict()["method"] == key


def test_parameters_that_a_method_lacks_are_not_passed_to_it():
    floored = RECALIBRATORS["temperature"].make_with(input="logits", floor=0.1, cap=False)
    assert (floored.input, floored.floor) == ("logits", 0.1)
    capped = RECALIBRATORS["isotonic"].make_with(input="logits", floor=0.1, cap=False)
    assert (capped.input, capped.cap) == ("logits", False)


def test_scaling_binning_takes_a_base_without_a_zero_floor(monkeypatch):
    def without_floor(*, input="probabilities"):
        return make("platt", input=input)

    entry = replace(RECALIBRATORS["platt"], key="bare", make=without_floor)
    monkeypatch.setitem(RECALIBRATORS._entries, "bare", entry)
    p, y = probabilities()
    fitted = make("scaling-binning", base="bare").fit(p, y)
    np.testing.assert_array_equal(
        fitted.transform(p), make("scaling-binning").fit(p, y).transform(p)
    )


NUMBERS = [
    (spec.key, parameter.name)
    for spec in RECALIBRATORS.methods(confidence=False)
    for parameter in spec.parameters
    if parameter.annotation in (float, float | None)
]


@pytest.mark.parametrize(("key", "name"), NUMBERS)
def test_parameters_are_finite(key, name):
    # JSON has no infinity, so that a map fitted with one could not be saved.
    for value in (np.inf, -np.inf, np.nan, 10**400):
        with pytest.raises(OptionError, match=f"'{name}' must be a finite number, got -?[in1]"):
            RECALIBRATORS[key].check({name: value})


# ---- scikit-learn's own checks, on every class, and on presets with code of their own


#: Presets that run no code but that of the keys beside them.
SAME = ("dirichlet-odir", "temperature+irm", "ets+isotonic")
KEYS_OF_ESTIMATORS = [spec.key for spec in RECALIBRATORS if spec.key not in SAME]
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
@pytest.mark.parametrize("key", KEYS_OF_ESTIMATORS)
def test_scikit_learn_checks(key):
    result = check_estimator(
        RECALIBRATORS[key].make(input="logits"), expected_failed_checks=CONTRADICTING, on_fail=None
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
