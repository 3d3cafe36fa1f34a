"""The command line: each command parses its flags and calls one function. Only its own modules are loaded."""
