"""What users complain of in other gateways, group by group, and the tests that would fail if it were so here.

    python -m tests.mcp.complaints        the table, in Markdown

The groups are those of a reading of some 200 reports on a dozen gateways and on clients with many servers.
"""

from typing import NamedTuple


class Complaint(NamedTuple):
    """A group of reports: what users say, and `file::test` for each side of it."""

    said: str
    tests: tuple[str, ...]


COMPLAINTS = {
    "A": Complaint(
        "Processes and sessions leak until the machine dies",
        (
            "mcp/test_source_processes.py::test_after_close_nothing_is_left_of_servers_that_cling",
            "mcp/test_source_processes.py::test_a_program_that_is_killed_leaves_no_server_behind",
            "mcp/test_published.py::test_kill_9_of_the_parent_leaves_none_of_them",
            (
                "mcp/test_gateway_sessions.py::"
                "test_a_process_of_a_client_ends_when_the_client_leaves_or_after_a_call_without_a_session"
            ),
            "mcp/test_soak.py::test_clients_of_a_gateway_get_right_answers_of_their_own_while_servers_are_killed",
        ),
    ),
    "B": Complaint(
        "Logins to servers expire, fail in silence, pop up browsers, are raced by two processes",
        (
            "mcp/test_oauth_renewal.py::test_a_token_that_has_ended_is_renewed_before_it_is_sent",
            "mcp/test_oauth_renewal.py::test_two_processes_do_not_race_for_a_refresh_token",
            "mcp/test_oauth_renewal.py::test_trouble_on_the_way_does_not_lock_out_for_good",
            "mcp/test_oauth_command.py::test_no_browser_is_opened_where_none_may",
            "mcp/test_oauth_source.py::test_a_server_without_a_login_is_named_and_comes_once_somebody_has_logged_in",
            "mcp/test_oauth_source.py::test_a_client_of_the_gateway_never_sees_the_401_of_a_server",
        ),
    ),
    "C": Complaint(
        "Sessions at servers are shared when they must not be, fresh when they must last, stale after a restart",
        (
            "mcp/test_gateway_serving.py::test_clients_over_http_have_their_own_sessions",
            "mcp/test_source_processes.py::test_a_session_has_a_process_of_its_own_where_the_entry_says_so",
            "mcp/test_source_processes.py::test_a_server_over_http_that_is_restarted_is_found_again",
            "mcp/test_source.py::test_each_caller_has_headers_and_connections_of_its_own",
            "mcp/test_soak.py::test_clients_of_a_gateway_get_right_answers_of_their_own_while_servers_are_killed",
        ),
    ),
    "D": Complaint(
        "One slow or dead server blocks all, or vanishes without a name",
        (
            "mcp/test_source.py::test_a_server_that_fails_costs_only_its_own_tools_and_is_named",
            "mcp/test_source.py::test_a_search_says_which_servers_are_away_also_where_hits_are_weak",
            "mcp/test_source.py::test_a_call_has_a_time_limit_in_all",
            "mcp/test_source_lists.py::test_a_search_says_that_a_server_is_still_connecting_and_finds_its_tools_later",
            "mcp/test_source_processes.py::test_the_first_connection_is_tried_again_until_it_succeeds",
            "mcp/test_published.py::test_all_are_ready_but_the_dead_one_which_is_named",
            "mcp/test_gateway_serving.py::test_a_second_start_answers_from_what_the_first_one_kept",
        ),
    ),
    "E": Complaint(
        "Things are lost on the way through: structured content, metadata, pages, annotations, progress",
        (
            "mcp/test_gateway_transparency.py::test_every_method_gives_through_the_gateway_what_it_gives_directly",
            "mcp/test_published.py::test_through_the_gateway_definitions_and_results_are_the_same",
            "mcp/test_source.py::test_a_result_keeps_its_parts_and_its_error",
            "mcp/test_source.py::test_progress_and_cancellation_pass",
            "mcp/test_source_lists.py::test_every_page_is_read_and_no_cursor_leads_round_in_a_circle",
        ),
    ),
    "F": Complaint(
        "The model does not search, or two searches stand in a row",
        (
            "mcp/test_gateway_names_and_pins.py::test_the_description_names_every_server_and_what_it_has",
            "mcp/test_gateway_names_and_pins.py::test_a_bare_name_is_understood_while_one_server_has_it",
            "mcp/test_gateway.py::test_a_listed_name_can_be_called_by_exactly_that_name",
            "mcp/test_gateway.py::test_found_tools_join_the_list_in_the_mode_live",
        ),
    ),
    "G": Complaint(
        "Configurations are overwritten, not imported, not read again",
        (
            "mcp/test_connect.py::test_servers_move_and_come_back_to_the_byte",
            "mcp/test_connect.py::test_comments_and_keys_of_servers_that_stay_keep_their_bytes",
            "mcp/test_connect.py::test_the_undo_refuses_a_file_that_has_changed_since_and_shows_how",
            "mcp/test_gateway_serving.py::test_the_configuration_is_read_again_and_never_written",
        ),
    ),
    "H": Complaint(
        "Names are too long, collide, or change when a server is added",
        (
            "mcp/test_gateway_names_and_pins.py::test_no_name_changes_when_servers_come",
            "mcp/test_gateway_names_and_pins.py::test_served_names_are_legal_and_distinct",
            "mcp/test_gateway_names_and_pins.py::test_names_that_differ_at_the_end_stay_apart_to_the_eye",
            "mcp/test_source.py::test_the_same_name_at_several_servers_is_told_apart",
        ),
    ),
    "I": Complaint(
        "Changes of a list are not sent, not heard, or come as a storm",
        (
            "mcp/test_source_lists.py::test_a_tool_that_comes_is_found_in_the_same_session_and_one_that_goes_is_not",
            "mcp/test_source_lists.py::test_a_storm_of_notifications_is_a_few_listings",
            "mcp/test_hostile.py::test_a_flood_delays_no_answer_and_is_told_once",
            "mcp/test_gateway.py::test_found_tools_join_the_list_in_the_mode_live",
        ),
    ),
    "J": Complaint(
        "Permissions are lost behind one call_tool",
        (
            "mcp/test_gateway.py::test_an_action_needs_its_door_and_the_word_of_a_person",
            "mcp/test_gateway.py::test_a_client_that_cannot_ask_has_its_own_permissions_or_none",
            "mcp/test_gateway_names_and_pins.py::test_what_is_denied_or_held_back_is_not_there",
            "mcp/test_policy.py::test_the_strictest_pattern_decides_wherever_it_stands",
            "session/test_two_doors.py::test_an_action_does_not_run_through_the_door_of_reads_and_runs_through_its_own",
        ),
    ),
    "K": Complaint(
        "Each agent is to have a part of the tools",
        (
            "mcp/test_policy.py::test_a_default_is_the_verdict_on_what_no_pattern_fits",
            "mcp/test_policy.py::test_the_pattern_of_one_server_says_nothing_of_another",
            "mcp/test_gateway_names_and_pins.py::test_what_is_denied_or_held_back_is_not_there",
        ),
    ),
    "L": Complaint(
        "Secrets leak: the whole environment goes to every child, tokens stand in errors",
        (
            "mcp/test_source.py::test_a_child_process_gets_a_minimal_environment",
            "mcp/test_source.py::test_no_secret_of_the_configuration_is_told",
            "mcp/test_hostile.py::test_a_secret_of_ours_in_an_error_of_a_server_is_masked",
            "mcp/test_gateway_serving.py::test_what_is_kept_holds_no_secret_and_is_readable_for_its_owner_alone",
            "mcp/test_connect.py::test_the_secrets_of_both_files_are_not_shown",
            "mcp/test_oauth_login.py::test_no_token_stands_in_what_is_shown_or_logged",
        ),
    ),
    "M": Complaint(
        "Nobody sees what a tool or a step costs in tokens",
        (
            "evals/doctor/test_doctor_command.py::test_clean_tools_give_0_and_what_they_cost",
            (
                "evals/inspection/test_traces.py::"
                "test_J53_a_conversation_is_a_timeline_of_searches_calls_approvals_and_requests"
            ),
            "evals/inspection/test_gateway_log.py::test_J53_the_log_of_a_real_gateway_is_a_timeline",
        ),
    ),
    "N": Complaint(
        "Results are too large for a model",
        (
            "mcp/test_result_pages.py::test_a_long_text_comes_in_pages_that_together_hold_all_of_it",
            "mcp/test_result_pages.py::test_ten_megabytes_in_one_line_are_kept_and_come_in_pages",
            "mcp/test_result_pages.py::test_images_stay_whole_and_are_named_before_their_page_comes",
            "mcp/test_hostile.py::test_an_answer_that_the_client_gives_up_for_its_size_costs_no_other_call",
        ),
    ),
    "O": Complaint(
        "Each call takes seconds more",
        (
            "mcp/test_gateway_sessions.py::test_answers_over_http_are_sent_at_once",
            "mcp/test_latency.py::test_the_command_compares_a_call_with_the_same_call_direct",
        ),
    ),
    "P": Complaint(
        "Arguments come as a JSON text, and every call fails",
        (
            "mcp/test_read_arguments.py::test_an_object_or_its_text_is_read",
            "mcp/test_read_arguments.py::test_what_is_no_object_is_refused_and_never_taken_for_no_arguments",
        ),
    ),
    "Q": Complaint(
        "On Windows npx is npx.cmd",
        ("mcp/test_command_lookup.py::test_npx_is_found_on_the_path_of_its_entry_and_is_npx_cmd_on_windows",),
    ),
    "R": Complaint(
        "Scanners cry wolf",
        (
            "evals/doctor/test_rates.py::test_alarms_are_judged_by_labels_and_by_what_is_hostile_on_purpose",
            (
                "evals/doctor/test_doctor_command.py::"
                "test_each_check_has_its_rates_beside_it_and_the_most_harmful_comes_first"
            ),
        ),
    ),
    "S": Complaint(
        "Quarantine is a dead end: no tool, no word, no way out",
        (
            (
                "mcp/test_pin_command.py::"
                "test_a_definition_that_changes_is_held_shown_and_released_by_the_command_it_names"
            ),
            "mcp/test_gateway_names_and_pins.py::test_a_changed_definition_is_held_back_and_a_new_tool_is_found",
            "mcp/test_pins.py::test_the_reason_names_the_command_that_releases_exactly_this_definition",
        ),
    ),
}


def table() -> str:
    """The table in Markdown: a row a group."""
    rows = ["| group | users say | tests |", "|---|---|---|"]
    for group, complaint in COMPLAINTS.items():
        rows.append(f"| {group} | {complaint.said} | {'<br>'.join(f'`{test}`' for test in complaint.tests)} |")
    return "\n".join(rows)


if __name__ == "__main__":
    print(table())
