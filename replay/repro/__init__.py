"""From a finding to a minimal script that fails the same way, run and verified by the same pipeline."""
