"""The part of the page Over time: the choices, the job, and the metric period by period."""
