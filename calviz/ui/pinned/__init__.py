"""A state that is kept beside the present one: other bins, another split, model, slice, reduction or map."""
