"""Reads MATCH_RECOGNIZE and windows with patterns."""
