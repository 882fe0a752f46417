//! Two hosts as network namespaces of one thread, joined by two cables: what is captured, shown, given back, and what is
//! left when a process ends.

#[path = "../hosts/mod.rs"]
mod hosts;

mod given_back;
mod groups;
mod losses;
mod queue;
mod watched;

use given_back::{
    a_datagram_says_on_which_network_it_came,
    a_packet_that_is_given_back_arrives_as_from_its_sender,
    addresses_of_the_host_are_told_from_others_and_from_those_that_it_has_lost,
    what_comes_on_a_network_that_stays_is_not_lost_when_another_one_goes_or_comes,
};
use groups::{
    a_packet_for_a_group_is_given_to_members_and_leaves_on_no_network,
    a_packet_for_a_group_of_ipv6_is_given_to_members_and_leaves_on_no_network,
};
use losses::tables_that_lose_packets_leave_each_other_as_they_are;
use queue::{
    many_are_captured_in_one_go_and_one_that_is_refused_keeps_no_other_from_it,
    one_process_has_the_rules_and_nothing_is_left_of_them, packets_pass_when_nobody_has_the_queue,
    what_is_captured_waits_for_a_verdict_and_the_rest_goes_on,
};
use watched::{
    connections_of_watched_ports_agree_on_short_segments_and_come_cut,
    heads_of_watched_packets_are_shown_and_packets_go_on,
};

bumpless_testing::tests!(
    a_packet_for_a_group_is_given_to_members_and_leaves_on_no_network,
    a_packet_for_a_group_of_ipv6_is_given_to_members_and_leaves_on_no_network,
    what_is_captured_waits_for_a_verdict_and_the_rest_goes_on,
    many_are_captured_in_one_go_and_one_that_is_refused_keeps_no_other_from_it,
    packets_pass_when_nobody_has_the_queue,
    one_process_has_the_rules_and_nothing_is_left_of_them,
    heads_of_watched_packets_are_shown_and_packets_go_on,
    a_packet_that_is_given_back_arrives_as_from_its_sender,
    connections_of_watched_ports_agree_on_short_segments_and_come_cut,
    a_datagram_says_on_which_network_it_came,
    what_comes_on_a_network_that_stays_is_not_lost_when_another_one_goes_or_comes,
    addresses_of_the_host_are_told_from_others_and_from_those_that_it_has_lost,
    tables_that_lose_packets_leave_each_other_as_they_are,
);
