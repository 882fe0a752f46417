//! Hosts with both cores on networks that lose, delay, repeat and reorder, are cut and flap, while processes restart, numbers
//! end, members of a group join late and leave, and an attacker sends what it has seen: thousands of seeds, each in milliseconds.
//!
//!     BUMPLESS_IPRP_SEEDS=10000 cargo test -p bumpless-iprp --test world
//!
//! `BUMPLESS_IPRP_SEED=7` runs that one alone and prints what arrives.
//!
//! Judged is: *first copy wins* (the first valid copy of each packet is delivered, whatever else has come), nothing is delivered
//! twice in a receiver's life, nothing forged ever and nothing replayed once a receiver has found its senders; after the last
//! fault every flow is replicated again on every network; every table stays within its bounds. A sender goes on with copies for three
//! `T_CAP` after an advertisement at most (*ends*), until three questions and a second without an answer (*lets go*), and not a packet less
//! (*holds on*).

mod asked;
mod check;
mod host;
mod plan;
mod run;
mod suite;

use plan::{Plan, SLOW};
use run::World;

fn run(seed: u64) -> Result<World, String> {
    let mut world = World::new(Plan::new(seed), seed);
    world.run().map_err(|what| format!("{what}, seed {seed}"))?;
    Ok(world)
}

fn seeds(default: u64) -> u64 {
    let given = std::env::var("BUMPLESS_IPRP_SEEDS").ok();
    given.map_or(default, |given| given.parse().expect("a number of seeds"))
}

#[test]
fn the_first_copy_wins_and_replication_comes_back_in_any_storm() {
    if let Ok(seed) = std::env::var("BUMPLESS_IPRP_SEED") {
        run(seed.parse().expect("a seed")).unwrap_or_else(|what| panic!("{what}"));
        return;
    }
    let (mut first, mut again, mut moved, mut suspended, mut refused) = (0, 0, 0, 0, 0);
    let mut totals = run::Totals::default();
    for seed in 0..seeds(300) {
        let world = run(seed).unwrap_or_else(|what| panic!("{what}"));
        first += world.check.first_copies;
        again += world.check.restarts_survived;
        moved += world.moved;
        suspended += world.suspended;
        refused += world.check.refused;
        totals.replicated += world.totals.replicated;
        totals.plain += world.totals.plain;
        totals.suppressed += world.totals.suppressed;
    }
    println!(
        "{first} delivered, {again} of them again after a restart, {refused} refused, {moved} moves, {suspended} suspensions, {totals:?}"
    );
    // The worlds are not empty.
    assert!(first > 10_000 && moved > 0 && refused > 1_000 && totals.suppressed > 0);
}

/// Quick worlds end sessions by time before anybody counts as gone; in these the receiver's silence is what is found out.
#[test]
fn a_sender_goes_on_until_nobody_answers_and_no_longer_where_advertisements_are_seldom() {
    let (mut doubtful, mut let_go, mut suspended) = (0, 0, 0);
    for seed in 0..seeds(150) {
        let world = run(seed | SLOW).unwrap_or_else(|what| panic!("{what}"));
        doubtful += world.asked.doubtful;
        let_go += world.asked.let_go;
        suspended += world.suspended;
    }
    println!("{doubtful} packets in doubt, {let_go} let go, {suspended} suspensions");
    assert!(doubtful > 1_000 && let_go > 1_000 && suspended > 20);
}
