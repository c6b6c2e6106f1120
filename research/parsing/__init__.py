"""Parsers beside two baselines: right-branching trees and a PCFG."""
