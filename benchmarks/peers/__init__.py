"""One file a system: `run(job)` trains a workload with it and gives seconds and weights.

`PACKAGE` says which distribution's version is reported. A system that can't train clients in
several processes at once uses one, and says so in what it gives.
"""
