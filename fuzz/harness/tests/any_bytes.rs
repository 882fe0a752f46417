//! The fuzz targets' harness, fed with random bytes and with every kept input.

use proptest::collection::vec;
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn any_datagram_is_read_and_written_alike_or_refused_with_a_cause(bytes in vec(any::<u8>(), 0..200)) {
        bumpless_harness::parse::run(&bytes);
    }

    #[test]
    fn any_edits_of_a_configuration_are_read_or_explained(mut bytes in vec(any::<u8>(), 1..120)) {
        bytes[0] = 0;
        bumpless_harness::config::run(&bytes);
    }

    #[test]
    fn any_conversation_keeps_the_promises_of_transfer(bytes in vec(any::<u8>(), 0..800)) {
        bumpless_harness::transfer::run(&bytes);
    }

    #[test]
    fn any_conversation_keeps_the_promises_of_redundancy(bytes in vec(any::<u8>(), 0..600)) {
        bumpless_harness::roles::run(&bytes);
    }
}
