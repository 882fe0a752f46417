//! The fuzz targets' harness in the ordinary tests: fed with the kept inputs, with edits of them,
//! and with random bytes.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use std::path::Path;

/// The kept inputs of a target, by name.
fn corpus(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../corpus")
        .join(target);
    let entries =
        std::fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("entry").path()).collect();
    paths.sort();
    let inputs = paths.iter().map(|path| std::fs::read(path).expect("input"));
    inputs.collect()
}

/// One of the kept inputs with some bytes changed, and something added or cut off.
fn edited(target: &str) -> impl Strategy<Value = Vec<u8>> + use<> {
    let inputs = corpus(target);
    let edits = vec((any::<Index>(), any::<u8>()), 0..8);
    let added = vec(any::<u8>(), 0..100);
    (any::<Index>(), edits, added, any::<bool>(), any::<Index>()).prop_map(
        move |(which, edits, added, cut, end)| {
            let mut bytes = inputs[which.index(inputs.len())].clone();
            for (at, value) in edits {
                let len = bytes.len();
                if len > 0 {
                    bytes[at.index(len)] = value;
                }
            }
            if cut {
                bytes.truncate(end.index(bytes.len() + 1));
            } else {
                bytes.extend(added);
            }
            bytes
        },
    )
}

#[test]
fn every_kept_input_keeps_the_promises() {
    corpus("parse")
        .iter()
        .for_each(|bytes| bumpless_harness::parse::run(bytes));
    corpus("config")
        .iter()
        .for_each(|bytes| bumpless_harness::config::run(bytes));
    corpus("pem")
        .iter()
        .for_each(|bytes| bumpless_harness::pem::run(bytes));
    corpus("messages")
        .iter()
        .for_each(|bytes| bumpless_harness::messages::run(bytes));
    corpus("keys")
        .iter()
        .for_each(|bytes| bumpless_harness::keys::run(bytes));
    corpus("state")
        .iter()
        .for_each(|bytes| bumpless_harness::state::run(bytes));
    corpus("session")
        .iter()
        .for_each(|bytes| bumpless_harness::session::run(bytes));
    corpus("transfer")
        .iter()
        .for_each(|bytes| bumpless_harness::transfer::run(bytes));
    corpus("open")
        .iter()
        .for_each(|bytes| bumpless_harness::open::run(bytes));
    corpus("roles")
        .iter()
        .for_each(|bytes| bumpless_harness::roles::run(bytes));
    corpus("iprp")
        .iter()
        .for_each(|bytes| bumpless_harness::iprp::run(bytes));
    corpus("guard")
        .iter()
        .for_each(|bytes| bumpless_harness::guard::run(bytes));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    #[test]
    fn any_datagram_is_read_and_written_alike_or_refused_with_a_cause(
        bytes in prop_oneof![edited("parse"), vec(any::<u8>(), 0..200)],
    ) {
        bumpless_harness::parse::run(&bytes);
    }

    #[test]
    fn any_edits_of_a_configuration_are_read_or_explained(
        bytes in prop_oneof![edited("config"), vec(any::<u8>(), 0..120)],
    ) {
        bumpless_harness::config::run(&bytes);
    }

    #[test]
    fn any_file_of_an_identity_is_read_or_refused_with_a_remedy(
        bytes in prop_oneof![edited("pem"), vec(any::<u8>(), 0..200)],
    ) {
        bumpless_harness::pem::run(&bytes);
    }

    #[test]
    fn any_file_of_a_state_is_read_and_written_alike_or_refused(
        bytes in prop_oneof![edited("state"), vec(any::<u8>(), 0..200)],
    ) {
        bumpless_harness::state::run(&bytes);
    }

    #[test]
    fn any_keys_are_the_same_however_they_are_cut_and_make_a_ring(
        bytes in prop_oneof![edited("keys"), vec(any::<u8>(), 0..200)],
    ) {
        bumpless_harness::keys::run(&bytes);
    }

    #[test]
    fn any_messages_are_the_same_however_they_are_cut(
        bytes in prop_oneof![edited("messages"), vec(any::<u8>(), 0..200)],
    ) {
        bumpless_harness::messages::run(&bytes);
    }

    #[test]
    fn whatever_is_done_to_a_session_both_ends_agree_on_one_secret_or_on_none(
        bytes in prop_oneof![edited("session"), vec(any::<u8>(), 0..100)],
    ) {
        bumpless_harness::session::run(&bytes);
    }

    #[test]
    fn any_conversation_keeps_the_promises_of_transfer(
        bytes in prop_oneof![edited("transfer"), vec(any::<u8>(), 0..800)],
    ) {
        bumpless_harness::transfer::run(&bytes);
    }

    #[test]
    fn only_what_was_sealed_opens_and_opens_once_whatever_is_done_on_its_way(
        bytes in prop_oneof![edited("open"), vec(any::<u8>(), 0..600)],
    ) {
        bumpless_harness::open::run(&bytes);
    }

    #[test]
    fn any_conversation_keeps_the_promises_of_redundancy(
        bytes in prop_oneof![edited("roles"), vec(any::<u8>(), 0..600)],
    ) {
        bumpless_harness::roles::run(&bytes);
    }

    #[test]
    fn anything_done_to_two_hosts_of_iprp_stays_within_bounds(
        bytes in prop_oneof![edited("iprp"), vec(any::<u8>(), 0..800)],
    ) {
        bumpless_harness::iprp::run(&bytes);
    }

    #[test]
    fn any_frames_keep_the_promises_of_reception(
        bytes in prop_oneof![edited("guard"), vec(any::<u8>(), 0..800)],
    ) {
        bumpless_harness::guard::run(&bytes);
    }
}
