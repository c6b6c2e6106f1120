"""Writes measured numbers from research/results/ into the pages of research/, and draws plots."""
