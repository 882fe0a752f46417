//! Runs one hot path of the cores so many times and prints nothing: `.ci/instructions.sh` counts the
//! instructions of a few rounds and of many, and keeps what one step costs.
//!
//!     hot_paths PATH ROUNDS

mod guard;
mod iprp;
mod node;
mod protection;
mod roles;
mod segments;
mod transfer;

use std::process::ExitCode;

/// A path's name, what runs so many rounds of it, and how many steps each round has.
type Path = (&'static str, fn(u64), u64);

const PATHS: [Path; 23] = [
    (
        "send a packet of 1 MB on one link",
        transfer::send_on_one,
        transfer::PACKETS,
    ),
    (
        "send a packet of 1 MB on two links",
        transfer::send_on_two,
        2 * transfer::PACKETS,
    ),
    (
        "receive a packet of 1 MB",
        transfer::receive,
        transfer::PACKETS,
    ),
    (
        "take an acknowledgement of 145 blocks",
        transfer::acknowledge,
        1,
    ),
    (
        "128 bytes there and back, 1 channel",
        transfer::small_of_one,
        1,
    ),
    (
        "128 bytes there and back, 1,000 channels",
        transfer::small_of_thousand,
        1,
    ),
    ("2 ms of a pair that hears each other", roles::heartbeats, 1),
    ("a turn of a node, 1 application", node::turns_of_one, 1),
    (
        "a turn of a node, 1,000 applications",
        node::turns_of_thousand,
        1,
    ),
    ("seal a full packet", protection::seal, protection::PACKETS),
    (
        "seal and open a full packet",
        protection::seal_and_open,
        protection::PACKETS,
    ),
    ("a turn in which nothing is due", roles::idle, 1),
    (
        "iPRP: replicate on two networks",
        iprp::replicate,
        iprp::PACKETS,
    ),
    (
        "iPRP: replicate, hand on and discard",
        iprp::replicate_and_discard,
        iprp::PACKETS,
    ),
    (
        "iPRP: replicate on two networks, not sealed",
        iprp::replicate_open,
        iprp::PACKETS,
    ),
    (
        "iPRP: replicate, hand on and discard, not sealed",
        iprp::replicate_and_discard_open,
        iprp::PACKETS,
    ),
    (
        "iPRP: replicate, hand on and discard of a group, not sealed",
        iprp::replicate_and_discard_of_group_open,
        iprp::PACKETS,
    ),
    (
        "iPRP: replicate, hand on and discard segments of TCP, not sealed",
        iprp::replicate_and_discard_segments_open,
        iprp::PACKETS,
    ),
    (
        "iPRP: send in standby, keep, hand on and answer, not sealed",
        iprp::keep_in_standby_open,
        iprp::PACKETS,
    ),
    (
        "iPRP: a copy leaves with 63 others in one message",
        segments::leave,
        segments::COPIES,
    ),
    (
        "iPRP: a copy leaves and comes with 63 others in one message",
        segments::leave_and_come,
        segments::COPIES,
    ),
    (
        "decide on a frame that is wanted and take it, 64 flows",
        guard::wanted,
        guard::FRAMES,
    ),
    (
        "decide on a frame of a flood, 64 flows",
        guard::flood,
        guard::FRAMES,
    ),
];

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    match (arguments.next(), arguments.next()) {
        (None, None) => {
            for (name, _, steps) in PATHS {
                println!("{steps}\t{name}");
            }
            ExitCode::SUCCESS
        }
        (Some(wanted), Some(rounds)) => {
            let path = PATHS.iter().find(|(name, ..)| *name == wanted);
            match (path, rounds.parse()) {
                (Some((_, run, _)), Ok(rounds)) => {
                    run(rounds);
                    ExitCode::SUCCESS
                }
                _ => usage(),
            }
        }
        _ => usage(),
    }
}

fn usage() -> ExitCode {
    eprintln!("hot_paths: give a path and a number of rounds; without both, it lists the paths");
    ExitCode::FAILURE
}
