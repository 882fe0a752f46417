//! Sessions as the paper has them: how they begin, what they use, when they end; what restarts, silence and strangers do to them.

#[path = "../support/pair.rs"]
mod pair;

mod kept;
mod life;
mod restarts;
mod slow;
mod standby;
mod trust;
