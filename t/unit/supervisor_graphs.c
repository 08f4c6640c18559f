/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: supervisor/runner/protocol/protocol.c */
/* OBJECTS: supervisor/runner/protocol/protocol_fields.c */
/* OBJECTS: supervisor/runner/protocol/protocol_record.c */
/* OBJECTS: supervisor/runner/protocol/protocol_make.c */
/* OBJECTS: supervisor/runner/pool/graphs.c core/ */
/* The graphs that runners report; see supervisor/runner/pool/graphs.h. */
#include "check.h"

#include <string.h>

#include <apr_strings.h>

#include "../../mod_agent/supervisor/runner/pool/graphs.h"

static agent_graph_table_t *make_table(apr_pool_t *pool,
                                       const char *const *names)
{
    agent_context_t *context = apr_pcalloc(pool, sizeof(*context));
    agent_pool_config_t config = {.graph_ids = names, .runners = 2};
    agent_graph_table_t *table = apr_pcalloc(pool, sizeof(*table));

    while (names[config.graph_count] != NULL) {
        config.graph_count++;
    }
    context->pool = pool;
    agent_graphs_init(table, context, &config);
    return table;
}

static agent_graph_table_t *make_two(apr_pool_t *pool)
{
    static const char *const names[] = {"a", "b", NULL};

    return make_table(pool, names);
}

static const char *take(agent_graph_table_t *table, agent_graph_set_t **set,
                        const char *graphs)
{
    agent_line_t line = {.type = AGENT_LINE_READY, .graphs = graphs};

    return agent_graphs_take(table, set, &line);
}

static void runners_with_the_same_graphs_have_one_set(void **state)
{
    agent_graph_table_t *table = make_two(*state);
    agent_graph_set_t *first = NULL;
    agent_graph_set_t *same = NULL;
    agent_graph_set_t *other = NULL;

    assert_null(take(table, &first, "{\"a\":{},\"b\":{}}"));
    assert_null(take(table, &same, "{\"b\":{\"description\":\"x\"},\"a\":{}}"));
    assert_null(take(table, &other, "{\"b\":{}}"));
    assert_ptr_equal(first, same);
    assert_ptr_not_equal(first, other);
    assert_int_equal(first->count, 2);
    assert_true(first->has[0] && first->has[1]);
    assert_true(!other->has[0] && other->has[1]);
}

/* Sets 0 .. 255 of eight graphs, of which no more are known than the pool can
 * have runners. */
static void sets_that_no_runner_has_are_replaced(void **state)
{
    static const char *const names[] = {"0", "1", "2", "3", "4",
                                        "5", "6", "7", NULL};
    agent_graph_table_t *table = make_table(*state, names);

    for (int bits = 0; bits < 256; bits++) {
        agent_graph_set_t *set = NULL;
        const char *graphs = "";

        for (int i = 0; i < 8; i++) {
            graphs = (bits >> i) & 1
                ? apr_psprintf(*state, "%s%s\"%d\":{}", graphs,
                               *graphs != '\0' ? "," : "", i)
                : graphs;
        }
        assert_null(
            take(table, &set, apr_pstrcat(*state, "{", graphs, "}", NULL)));
        agent_graphs_release(set);
        assert_int_equal(set->users, 0);
        assert_int_equal(set->has[7], bits >> 7);
    }
    assert_int_equal(table->set_count, AGENT_RUNNERS_OF_POOL(2) + 1);
}

static void a_new_set_has_not_been_searched(void **state)
{
    agent_graph_table_t *table = make_two(*state);
    agent_graph_set_t *first = NULL;
    agent_graph_set_t *other = NULL;

    assert_null(take(table, &first, "{\"a\":{}}"));
    first->full_scan_at = apr_time_from_sec(1000);
    assert_null(take(table, &other, "{\"b\":{}}"));
    assert_true(other->full_scan_at == 0);
}

static void a_graph_is_found_by_its_name(void **state)
{
    agent_graph_table_t *table = make_two(*state);

    assert_int_equal(agent_graphs_find(table, "a"), 0);
    assert_int_equal(agent_graphs_find(table, "b"), 1);
    assert_int_equal(agent_graphs_find(table, "desk/a"), -1);
}

static void an_equal_report_is_not_kept_again(void **state)
{
    agent_graph_table_t *table = make_two(*state);
    agent_buffer_t *report = &table->graphs[0].report;
    agent_graph_set_t *set = NULL;

    assert_null(take(table, &set, "{\"a\":{\"error\":null}}"));
    assert_true(agent_buffer_length(report) > 0);
    agent_buffer_clear(report);
    assert_null(take(table, &set, "{\"a\":{}}"));
    assert_int_equal(agent_buffer_length(report), 0);
    assert_null(take(table, &set, "{\"a\":{\"description\":\"x\"}}"));
    assert_non_null(strstr(agent_buffer_text(report), "\"description\":\"x\""));
    assert_int_equal(agent_buffer_length(&table->graphs[1].report), 0);
}

static void a_refused_report_changes_nothing(void **state)
{
    static const char *const refused[] = {
        "{\"a\":{},\"c\":{}}",
        "{\"a\":{},\"a\":{}}",
        "{\"a\":{},\"\\u0061\":{}}",
        "{\"a\":[]}",
        "{\"a\":{\"schemas\":[]}}",
        "{\"a\":{\"drawing\":1}}",
        "{\"a\":{\"description\":{}}}",
        "{\"a\":{\"error\":\"x\"}}",
        "{\"a\":{\"factory\":1}}",
        "{\"a\":{\"error\":{\"message\":1}}}",
        "{\"a\":{\"schemas\":{\"input_schema\":[]}}}",
        "{\"a\":{\"schemas\":{\"context_schema\":true}}}",
        "{\"a\":{\"drawing\":{\"nodes\":{}}}}",
        "{\"a\":{\"drawing\":{\"nodes\":[{},1]}}}",
        "{\"a\":{\"drawing\":{\"nodes\":[],\"edges\":[[]]}}}"};
    agent_graph_table_t *table = make_two(*state);

    for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++) {
        agent_graph_set_t *set = NULL;

        assert_non_null(take(table, &set, refused[i]));
        assert_null(set);
    }
    assert_int_equal(table->set_count, 0);
    assert_int_equal(agent_buffer_length(&table->graphs[0].report), 0);
}

/* Its import has ended two runners. */
static agent_reported_graph_t *fail_graph(const agent_graph_table_t *table,
                                          int i)
{
    assert_false(
        agent_graphs_blame(table, &table->graphs[i], false, "crashed"));
    assert_true(agent_graphs_blame(table, &table->graphs[i], true, "crashed"));
    return &table->graphs[i];
}

static void a_graph_has_failed_until_a_runner_has_imported_it(void **state)
{
    const agent_graph_table_t *table = make_two(*state);
    const agent_reported_graph_t *graph = fail_graph(table, 0);
    const bool *early;
    const bool *retrying;

    assert_non_null(early = agent_graphs_copy_failed(table, *state));
    assert_true(early[0] && !early[1]);
    agent_graphs_retry(table);
    assert_null(retrying = agent_graphs_copy_failed(table, *state));
    assert_false(agent_graphs_have_recovered(table, early));

    agent_graphs_clear(table, retrying);
    assert_null(graph->failure);
    assert_false(graph->is_quarantined || graph->is_retried);
    assert_true(agent_graphs_have_recovered(table, early));
    assert_false(agent_graphs_have_recovered(table, retrying));
}

/* The runner was started before another one, which imports the graph again. */
static void a_runner_without_a_graph_says_nothing_about_it(void **state)
{
    const agent_graph_table_t *table = make_two(*state);
    agent_reported_graph_t *graph = fail_graph(table, 0);
    const bool *early = agent_graphs_copy_failed(table, *state);

    agent_graphs_retry(table);
    agent_graphs_clear(table, early);
    assert_true(graph->is_retried && graph->is_quarantined);
    assert_false(agent_graphs_have_recovered(table, early));
    /* The other one ends: it was warned, and the graph has failed again. */
    assert_true(agent_graphs_blame(table, graph, true, "crashed"));
}

static void members_of_a_report_may_be_null_or_unknown(void **state)
{
    agent_graph_table_t *table = make_two(*state);
    agent_graph_set_t *set = NULL;

    assert_null(take(table, &set,
                     "{\"a\":{\"schemas\":{\"input_schema\":null,\"x\":1},"
                     "\"drawing\":{\"nodes\":[{}],\"edges\":null},"
                     "\"error\":{\"message\":null}}}"));
    assert_non_null(set);
}

static void a_description_has_at_most_4_kib(void **state)
{
    agent_graph_table_t *table = make_two(*state);
    agent_graph_set_t *set = NULL;
    char text[4097 + 1];

    memset(text, 'x', sizeof(text));
    text[4097] = '\0';
    assert_string_equal(
        take(table, &set,
             apr_psprintf(*state, "{\"a\":{\"description\":\"%s\"}}", text)),
        "it reported a description of more than 4 KiB");
    assert_null(set);
    assert_null(take(
        table, &set,
        apr_psprintf(*state, "{\"a\":{\"description\":\"%s\"}}", text + 1)));
}

static void a_report_has_the_id_of_the_system_assistant(void **state)
{
    static const char *const names[] = {"agent", NULL};
    agent_graph_table_t *table = make_table(*state, names);
    agent_graph_set_t *set = NULL;

    assert_null(take(table, &set, "{\"agent\":{}}"));
    assert_string_equal(
        agent_buffer_text(&table->graphs[0].report),
        "{\"assistant_id\":\"fe096781-5601-53d2-b2f6-0d3403f7e9ca\","
        "\"graph_id\":\"agent\"}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(runners_with_the_same_graphs_have_one_set),
        CHECK_TEST(sets_that_no_runner_has_are_replaced),
        CHECK_TEST(a_new_set_has_not_been_searched),
        CHECK_TEST(a_graph_is_found_by_its_name),
        CHECK_TEST(an_equal_report_is_not_kept_again),
        CHECK_TEST(a_refused_report_changes_nothing),
        CHECK_TEST(a_graph_has_failed_until_a_runner_has_imported_it),
        CHECK_TEST(a_runner_without_a_graph_says_nothing_about_it),
        CHECK_TEST(members_of_a_report_may_be_null_or_unknown),
        CHECK_TEST(a_description_has_at_most_4_kib),
        CHECK_TEST(a_report_has_the_id_of_the_system_assistant),
    };

    return CHECK_RUN(tests);
}
