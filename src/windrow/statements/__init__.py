"""How a session runs each kind of statement."""
