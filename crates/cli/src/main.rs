//! The bumpless command.
fn main() {}
