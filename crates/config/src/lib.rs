//! The configuration file of a pair: schema, every error at once, sample file.
