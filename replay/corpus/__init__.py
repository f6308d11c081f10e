"""Labelled runs, and how well the diagnosis agrees with their labels: the tool measured by itself."""
