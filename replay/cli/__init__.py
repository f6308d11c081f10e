"""The commands. They make many objects and few cycles: to look for those at every 700th, while modules are imported and
logs are read, takes a tenth of a second of the shortest command.
"""

import gc

gc.set_threshold(200_000)
