"""From bytes or objects to `Predictions`, and back to a calibrated file: formats, recognition of columns, building, repairs, joining; `any_size/` sums and samples what does not fit into memory.

Not here: what a score means. `arrow_tables`, `parquet_tables` import pyarrow and are imported when
used; `formats/` is what the registry imports.
"""

from __future__ import annotations

from calviz.data.first_rows import FirstRows as FirstRows
from calviz.data.first_rows import first_rows as first_rows
from calviz.data.format import FORMATS as FORMATS
from calviz.data.format import REPAIRS as REPAIRS
from calviz.data.format import ReadingOptions as ReadingOptions
from calviz.data.joining import LabelFile as LabelFile
from calviz.data.loaded import Loaded as Loaded
from calviz.data.loaded import Recognition as Recognition
from calviz.data.reading import Together as Together
from calviz.data.reading import are_logs as are_logs
from calviz.data.reading import load as load
from calviz.data.reading import one_model as one_model
from calviz.data.reading import read as read
from calviz.data.reading import zipped as zipped
