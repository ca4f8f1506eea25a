"""Random input of every kind, judged without knowing the right answer: `make fuzz`, `python -m tools.fuzz --help`."""
