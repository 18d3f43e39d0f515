"""The console in real Chromium before a real hub.

The acceptance tests of the console, and what shows each. Every tab of ``signed_in`` fails its test
when the page complains (the policy of contents included) or asks anybody but the console. How long
something takes is measured by ``bench console`` and asserted nowhere.

| | it is so that | shown by |
|---|---|---|
| 1 | a login link signs in once | test_a_login_link_signs_in_once |
| 2 | an expired or foreign code is refused | test_a_code_is_refused_when_its_minute_is_over, test_a_code_of_another_hub_is_refused, test_a_made_up_code_is_refused_in_a_sentence |
| 3 | the code leaves the address bar | test_the_code_leaves_the_address_bar_and_the_history |
| 4 | the cookie is strict, and no script reads it | test_scripts_cannot_read_the_cookie |
| 5 | a POST or WebSocket of another origin is refused | test_pages_of_other_origins_reach_neither_session_nor_socket |
| 6 | no view breaks the CSP or logs an error | test_a_view_passes_axe_and_needs_no_sideways_scrolling, and every tab of ``signed_in`` |
| 7 | no request leaves the origin | every tab of ``signed_in`` |
| 8 | with no edges the fleet says how to join one | test_with_no_edges_to_see_the_fleet_says_how_to_join_one |
| 9 | an edge made by kubectl appears | test_an_edge_created_by_kubectl_appears_without_a_reload, test_an_edge_that_is_made_among_ten_thousand_appears |
| 10 | a stopped syncer turns away | test_a_stopped_syncer_turns_away_when_its_lease_ends |
| 11 | counts equal those of the API | test_every_count_equals_the_one_computed_from_the_api, test_counts_equal_those_computed_from_the_api |
| 12 | a filter of 10,000 edges shows its matches | test_filters_show_their_matches_and_nothing_else |
| 13 | 10,000 rows are under 100 elements | test_scrolling_all_rows_keeps_under_a_hundred_row_elements |
| 14 | every view restores from its address, and after Back | test_every_view_restores_from_its_address_and_after_back, test_a_view_restores_from_its_address_and_after_back |
| 15 | explain equals the command | test_explain_in_the_browser_equals_the_command |
| 16 | the smallest edit makes the object appear | test_the_smallest_edit_tried_and_applied_makes_the_object_appear |
| 17 | what-if writes nothing and equals the command | test_what_if_equals_the_command_and_writes_nothing |
| 18 | apply is refused when the revision moved | test_apply_is_refused_when_the_objects_moved_after_the_preview |
| 19 | a content edit counts all its destinations | test_a_content_edit_counts_all_its_destinations |
| 20 | nobody sees other workspaces; a revoked right empties the view | test_with_no_edges_to_see_the_fleet_says_how_to_join_one, test_a_revoked_right_empties_the_view_at_once |
| 21 | a killed hub shows the banner, and its return resumes | test_a_killed_hub_shows_a_banner_and_its_return_resumes_without_a_reload |
| 22 | twenty tabs are live | test_twenty_tabs_are_all_live |
| 23 | an ended session stops retries | test_an_ended_session_stops_retries_with_one_banner |
| 24 | each view passes axe in every look | test_a_view_passes_axe_and_needs_no_sideways_scrolling, test_a_view_with_something_in_it_passes_axe, test_the_page_to_sign_in_passes_axe |
| 25 | the tutorial is played by keyboard alone | test_the_tutorial_can_be_played_by_keyboard_alone |
"""  # noqa: E501 - a table
