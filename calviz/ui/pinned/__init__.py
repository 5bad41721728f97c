"""The pinned state, shown beside the current one: other bins, or another split, model, slice, reduction or map."""
