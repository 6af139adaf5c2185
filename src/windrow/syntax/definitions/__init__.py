"""Texts that define views and functions."""
