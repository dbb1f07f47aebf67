"""Votes of many entities: what is added or compared without anybody seeing the parts."""
