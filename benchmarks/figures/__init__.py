"""Writes measured numbers from results/ into the pages of the documentation."""
