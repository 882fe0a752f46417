//! What iPRP promises of programs that know nothing of it: two hosts as namespaces, two networks, the real daemon on both, and
//! sockets as any program has them.

#[path = "../support/mod.rs"]
mod support;

mod bursts;
mod certificates;
mod demo;
mod evaluate;
mod flows;
mod groups;
mod hostile;
mod readme;
mod site;
mod trial;
mod view;
mod ways;
mod wrong_input;

use bursts::bursts_leave_in_segments_and_lose_nothing_when_a_network_shrinks_or_goes;
use certificates::{
    a_host_of_another_authority_or_that_is_not_a_peer_causes_no_session,
    a_host_that_is_revoked_is_neither_heard_nor_sent_to_within_seconds,
    certificates_that_cannot_be_used_are_told_with_file_reason_and_remedy,
    either_host_with_a_certificate_may_be_killed_and_is_replicated_to_again,
    hosts_with_certificates_roll_their_keys_and_lose_nothing_while_either_network_is_cut,
};
use demo::{
    a_demo_that_is_stopped_or_killed_leaves_nothing,
    the_demo_shows_a_stream_that_survives_a_cut_in_a_picture_of_its_own,
    the_demo_takes_no_rights_where_user_namespaces_are_permitted,
};
use evaluate::a_slice_of_the_evaluation_finds_the_losses_that_theory_says_and_keeps_its_raw_data;
use flows::{
    a_killed_daemon_leaves_flows_as_they_were_and_comes_back_without_a_loss,
    a_standby_stream_moves_when_its_network_falls_silent_and_loses_nothing,
    a_stream_loses_and_doubles_nothing_when_either_network_is_cut,
    a_stream_over_ipv6_survives_a_cut,
    a_tcp_connection_begun_before_the_daemons_goes_on_while_its_network_is_cut,
    ports_change_while_it_runs_and_a_ping_measures_each_network,
};
use groups::{
    a_group_that_no_network_carries_is_refused_by_check_and_told_in_status,
    a_group_with_certificates_needs_a_key_file_and_wrong_groups_are_told,
    a_groups_secret_rolls_over_by_reload_without_a_loss_and_who_has_the_former_one_is_shut_out,
    a_host_with_another_secret_of_a_group_is_told_so_and_takes_nothing_from_its_members,
    a_stream_to_a_group_loses_and_doubles_nothing_at_any_member_when_either_network_is_cut,
    a_stream_to_a_group_of_ipv6_loses_and_doubles_nothing_when_either_network_is_cut,
};
use hostile::an_attacker_on_both_networks_causes_no_session_no_delivery_and_no_growth;
use readme::the_readme_word_for_word_protects_a_stream_between_two_hosts;
use trial::a_test_stream_tells_what_came_and_what_each_network_carried_and_lost;
use view::a_live_view_shows_rates_and_redraws_only_a_terminal;
use ways::the_hops_on_each_network_are_found_and_the_network_that_is_silent_is_named;
use wrong_input::{
    each_wrong_input_is_told_with_its_remedy, missing_rights_and_a_second_daemon_are_told,
};

bumpless_testing::tests!(
    a_stream_loses_and_doubles_nothing_when_either_network_is_cut,
    a_standby_stream_moves_when_its_network_falls_silent_and_loses_nothing,
    a_tcp_connection_begun_before_the_daemons_goes_on_while_its_network_is_cut,
    a_killed_daemon_leaves_flows_as_they_were_and_comes_back_without_a_loss,
    a_stream_over_ipv6_survives_a_cut,
    bursts_leave_in_segments_and_lose_nothing_when_a_network_shrinks_or_goes,
    ports_change_while_it_runs_and_a_ping_measures_each_network,
    a_stream_to_a_group_loses_and_doubles_nothing_at_any_member_when_either_network_is_cut,
    a_stream_to_a_group_of_ipv6_loses_and_doubles_nothing_when_either_network_is_cut,
    a_host_with_another_secret_of_a_group_is_told_so_and_takes_nothing_from_its_members,
    a_group_with_certificates_needs_a_key_file_and_wrong_groups_are_told,
    a_group_that_no_network_carries_is_refused_by_check_and_told_in_status,
    a_groups_secret_rolls_over_by_reload_without_a_loss_and_who_has_the_former_one_is_shut_out,
    a_live_view_shows_rates_and_redraws_only_a_terminal,
    the_hops_on_each_network_are_found_and_the_network_that_is_silent_is_named,
    a_test_stream_tells_what_came_and_what_each_network_carried_and_lost,
    hosts_with_certificates_roll_their_keys_and_lose_nothing_while_either_network_is_cut,
    either_host_with_a_certificate_may_be_killed_and_is_replicated_to_again,
    a_host_of_another_authority_or_that_is_not_a_peer_causes_no_session,
    a_host_that_is_revoked_is_neither_heard_nor_sent_to_within_seconds,
    an_attacker_on_both_networks_causes_no_session_no_delivery_and_no_growth,
    certificates_that_cannot_be_used_are_told_with_file_reason_and_remedy,
    the_readme_word_for_word_protects_a_stream_between_two_hosts,
    the_demo_shows_a_stream_that_survives_a_cut_in_a_picture_of_its_own,
    the_demo_takes_no_rights_where_user_namespaces_are_permitted,
    a_demo_that_is_stopped_or_killed_leaves_nothing,
    a_slice_of_the_evaluation_finds_the_losses_that_theory_says_and_keeps_its_raw_data,
    each_wrong_input_is_told_with_its_remedy,
    missing_rights_and_a_second_daemon_are_told,
);
