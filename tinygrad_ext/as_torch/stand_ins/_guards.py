"""torch._guards: what libraries ask a compiler that reads bytecode, which is not here."""


def active_fake_mode():
    """None: no mode makes tensors without memory of all."""
    return None


def detect_fake_mode(inputs=None):
    """None, as above."""
    return None
