"""The command line: parse, call one function. Only the chosen command's modules are loaded."""
