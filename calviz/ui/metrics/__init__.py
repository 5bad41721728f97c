"""The parts of the page Metrics: the table, other libraries' conventions, and the export."""
