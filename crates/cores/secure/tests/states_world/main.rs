//! Two nodes that seal the states of several channels for each other, and an attacker on the way who holds states back,
//! repeats, splices, relabels, bends and downgrades them, while processes start again, secrets roll and clocks are set:
//! thousands of seeds, each in milliseconds.
//!
//!     BUMPLESS_STATE_SEEDS=10000 cargo test -p bumpless-secure --test states_world
//!
//! Judged is by a model that sees what was sealed and what is offered (`check.rs`): whatever opens is *genuine* (of that way, to
//! the byte), *whole*, sealed as it was *asked* for, with a secret that *counts*, *forward* and *timely*; what may open
//! *opens*; and no two states share key and nonce (*apart*).
#![cfg(feature = "ring")]

mod check;
mod world;

use world::World;

fn run(seed: u64) -> Result<World, String> {
    let mut world = World::new(seed);
    world.run().map_err(|what| format!("{what}, seed {seed}"))?;
    Ok(world)
}

#[test]
fn whatever_an_attacker_does_with_sealed_states_only_what_may_opens_and_all_that_may_does() {
    let given = std::env::var("BUMPLESS_STATE_SEEDS").ok();
    let seeds = given.map_or(300, |given| given.parse().expect("a number of seeds"));
    let (mut opened, mut refused) = (0, [0; world::ATTACKS]);
    for seed in 0..seeds {
        let world = run(seed).unwrap_or_else(|what| panic!("{what}"));
        opened += world.opened;
        for (sum, more) in refused.iter_mut().zip(world.refused) {
            *sum += more;
        }
    }
    println!("{opened} opened, refused by attack: {refused:?}");
    // The worlds are not empty: each attack has met a refusal.
    assert!(opened > 10_000 && refused.iter().all(|&refused| refused > 100));
}
