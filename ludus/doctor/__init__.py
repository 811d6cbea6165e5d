"""The doctor: evidence in, findings out. Reads files with numpy and the standard library alone,
live or years later."""
