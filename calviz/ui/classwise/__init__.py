"""The parts of the page Class-wise: the errors by class, and the table from which one class is picked."""
