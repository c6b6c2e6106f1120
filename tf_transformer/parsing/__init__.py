"""Constituency trees: Penn bracket files, trees as sequences of actions, bracket scores."""
