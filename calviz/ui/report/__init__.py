"""The part of the page Report: the choice of its contents, and the job that makes it. Reports are defined in `calviz.report`."""
