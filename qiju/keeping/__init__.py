"""Keeping: what a record needs to outlive the session, the laptop and the tool's own versions."""
