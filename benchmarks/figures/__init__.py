"""Writes measured numbers from benchmarks/results/ into the pages of the documentation."""
