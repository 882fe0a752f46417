//! Cyclic executor, applications, field I/O and the simulated plant.
