"""What the screens show, as plain data: no terminal in here (an import contract keeps it so)."""
