"""An example of a plugin for calviz."""
