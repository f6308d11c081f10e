"""The commands. They make many objects and few cycles: to look for those at every 700th, while modules are imported and
logs are read, and again in all that is left at the end, takes a quarter of a second of the shortest command.
"""

import atexit
import gc

gc.set_threshold(200_000)
atexit.register(gc.freeze)
