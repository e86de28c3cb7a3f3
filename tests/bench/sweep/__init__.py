"""Every op of torch's operator database, compiled and plain, by dtype, size and layout."""
