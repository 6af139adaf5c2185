"""What a session does with each kind of statement."""
