"""The part of the page Report: what goes into it, and the job that makes it. What a report is, is in `calviz.report`."""
