"""Spark, and Spark Connect, sum frames to the cells that the embedded engine makes of the same file."""

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import calviz
from calviz.core.errors import InputError
from calviz.recalibrators.platt_scaling import PlattScaling
from tests.unit.data.test_profile_classes import KEYS, simulated
from tests.unit.data.test_profile_results import merge_scores, three_columns
from tests.unit.data.test_profiles import COUNTED, four_classes
from tests.unit.data.test_sampling import check, table, wide

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
    # What is set for the server of Connect cannot be set for a session as well.
    pytest.mark.filterwarnings("ignore:Failed to set spark:UserWarning"),
]

Frame = Callable[[pl.DataFrame], object]


def session(folder: Path, patch: pytest.MonkeyPatch, remote: bool):
    """A session of this process, or of a server of Spark Connect that is started for it."""
    sql = pytest.importorskip("pyspark.sql", reason="pip install -r requirements-spark.txt")
    if remote:
        pytest.importorskip("grpc", reason="pip install -r requirements-spark.txt")
    if shutil.which("java") is None:
        pytest.skip("Spark needs a Java runtime (apt install openjdk-17-jre-headless)")
    # The processes that Spark starts are those of this interpreter.
    patch.setenv("PYSPARK_PYTHON", sys.executable)
    patch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    builder = sql.SparkSession.builder
    if remote:
        patch.setenv("SPARK_TESTING", "1")  # a free port
        # What it leaves behind would make every later session one of Connect.
        for name in ("SPARK_CONNECT_MODE_ENABLED", "SPARK_LOCAL_REMOTE", "SPARK_REMOTE"):
            patch.setenv(name, "")
            patch.delenv(name)
        builder = builder.remote("local[2]")
        builder = builder.config("spark.connect.grpc.binding.address", "127.0.0.1")
    else:
        builder = builder.master("local[2]").appName("calviz")
    for key, value in {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.driver.memory": "1g",
        # Queries of a few rows end before the second compiler is worth its time.
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    }.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


@pytest.fixture(scope="module", params=[False, True], ids=["classic", "connect"])
def spark(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator:
    """Both, one after the other."""
    with pytest.MonkeyPatch.context() as patch:
        opened = session(tmp_path_factory.mktemp("spark"), patch, request.param)
        yield opened
        opened.stop()


@pytest.fixture
def frame(spark, tmp_path: Path) -> Frame:
    """A frame of Spark with the rows of one of polars."""

    def spark_frame(rows: pl.DataFrame) -> object:
        at = tmp_path / f"{len(list(tmp_path.iterdir()))}.parquet"
        rows.write_parquet(at)
        return spark.read.parquet(str(at))

    return spark_frame


#: Both sessions run the same plans: what is only another plan is asked of one.
CLASSIC = pytest.mark.parametrize("spark", [False], ids=["classic"], indirect=True)


def test_the_driver_sees_cells_only(frame: Frame, monkeypatch):
    rows, how = table(), {"by": ["country"], "time": "day"}
    own = calviz.profile(rows, **how)
    native = frame(rows)
    seen = rows_that_are_brought(type(native), monkeypatch)
    check(calviz.profile(native, **how), own)
    # The head that columns are recognised by, and the cells, of which each score is one then.
    assert len(seen) == 3
    assert seen[0] <= 1_000
    assert seen[1] <= seen[2] == own.cells.height


@CLASSIC
def test_four_classes(frame: Frame):
    rows = wide()
    check(calviz.profile(frame(rows)), calviz.profile(rows))


@CLASSIC
def test_counts(frame: Frame):
    rows = four_classes()
    check(calviz.profile(frame(rows), **COUNTED), calviz.profile(rows, **COUNTED))


def test_cells_of_each_class(frame: Frame):
    rows, _ = simulated()
    how = {"label": "y", "each_class": True, "by": ["site"], "time": "day"}
    profiled, own = (calviz.profile(of, **how) for of in (frame(rows), rows))
    check(profiled, own)
    errors = [calviz.evaluate(profile, KEYS) for profile in (profiled, own)]
    for key in KEYS:
        assert errors[0][key].value == pytest.approx(errors[1][key].value, abs=1e-12), key


@CLASSIC
def test_logits(frame: Frame):
    rows = three_columns()
    result, own = (
        merge_scores(calviz.profile(of, name="z", true_class=True)) for of in (frame(rows), rows)
    )
    check(result, own)


@pytest.mark.parametrize("as_vector", [True, False])
def test_a_vector_of_probabilities_is_a_column_per_class(as_vector, frame: Frame, spark):
    from pyspark.ml.functions import array_to_vector

    rows, _ = simulated()
    columns = sorted(c for c in rows.columns if c.startswith("p"))
    bare = rows.select("y", probability=pl.concat_list(columns))
    native = frame(bare)
    if as_vector:
        native = native.withColumn("probability", array_to_vector("probability"))  # type: ignore[attr-defined]
    own = calviz.profile(rows.select("y", *columns), label="y")
    for how in ({}, {"scores": ["probability"]}):
        check(calviz.profile(native, label="y", **how), own)


@CLASSIC
def test_what_cannot_be_used_is_counted(frame: Frame):
    rows = three_columns().with_columns(logit_1=pl.lit(np.inf))
    with pytest.raises(InputError, match="400 with a missing score"):
        calviz.profile(frame(rows))


def test_a_map_goes_to_the_rows(frame: Frame):
    rows = table()
    p = rows["p"].to_numpy()
    fitted = PlattScaling().fit(np.stack([1 - p, p], 1), rows["y"].to_numpy())
    mapped = fitted.transform_frame(frame(rows), "p").select("p", "p_calibrated").collect()
    p, value = np.array(mapped).T
    wanted = fitted.transform(np.stack([1 - p, p], axis=1))[:, 1]
    np.testing.assert_allclose(value, wanted, rtol=0, atol=1e-9)


def rows_that_are_brought(frame: type, monkeypatch) -> list[int]:
    """How many rows each collection of a Spark frame brings."""
    seen: list[int] = []
    for name in ("collect", "toArrow", "toPandas"):
        original = getattr(frame, name)

        def counted(self, *args, original=original, **kwargs):
            result = original(self, *args, **kwargs)
            seen.append(len(result))
            return result

        monkeypatch.setattr(frame, name, counted)
    return seen
