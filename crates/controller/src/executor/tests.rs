//! Executor rules, in simulated time.
