/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: runners/builtin/run/queue.c core/ */
/* Queued start lines: which may begin, and finding one by its run. */
#include "check.h"

#include <string.h>

#include <apr_strings.h>

#include "runners/builtin/run/queue.h"

#define FIRST  "01990000-0000-7000-8000-000000000001"
#define SECOND "01990000-0000-7000-8000-000000000002"

static runner_queue_t *make_queue(apr_pool_t *pool)
{
    runner_queue_t *queue = apr_pcalloc(pool, sizeof(*queue));

    runner_queue_init(queue, pool);
    return queue;
}

static void add(runner_queue_t *queue, const char *text)
{
    runner_weight_t weight = {RUNNER_WEIGHT_SMALL + 1, RUNNER_WEIGHT_SMALL + 1};

    runner_queue_add(queue, text, strlen(text), weight);
}

static void an_entry_is_found_by_its_run_and_epoch(void **state)
{
    runner_queue_t *queue = make_queue(*state);
    runner_queue_entry_t *entry;

    add(queue, "{\"type\":\"start\",\"run_id\":\"" FIRST "\",\"epoch\":3}");
    add(queue, " { \"epoch\" : 12 , \"run_id\" : \"" SECOND "\" }");
    assert_null(runner_queue_find_run(queue, FIRST, 2));
    assert_null(runner_queue_find_run(queue, SECOND, 3));
    entry = runner_queue_find_run(queue, SECOND, 12);
    assert_non_null(entry);
    assert_string_equal(entry->run_id, SECOND);
    runner_queue_remove(queue, entry);
    assert_null(runner_queue_find_run(queue, SECOND, 12));
    assert_non_null(runner_queue_find_run(queue, FIRST, 3));
    assert_int_equal(queue->count, 1);
}

static void an_id_in_a_nested_object_is_ignored(void **state)
{
    runner_queue_t *queue = make_queue(*state);

    add(queue,
        "{\"type\":\"start\",\"run_id\":\"" SECOND "\",\"epoch\":1,"
        "\"thread_id\":\"" FIRST "\",\"input\":{\"run_id\":\"" FIRST
        "\",\"note\":\"\\\",\\\"run_id\\\":\\\"" FIRST "\"}}");
    add(queue,
        "{\"input\":{\"run_id\":\"" FIRST "\",\"epoch\":1},\"epoch\":1}");
    assert_null(runner_queue_find_run(queue, FIRST, 1));
    assert_non_null(runner_queue_find_run(queue, SECOND, 1));
}

static void a_line_without_a_run_id_is_never_found(void **state)
{
    runner_queue_t *queue = make_queue(*state);

    add(queue, "{\"type\":\"start\",\"run_id\":\"\",\"epoch\":1}");
    add(queue, "{\"type\":\"start\",\"run_id\":5,\"epoch\":1}");
    add(queue, "{\"type\":\"start\",\"run_id\":\"" FIRST "\",\"epoch\":\"1\"}");
    add(queue, "[]");
    assert_null(runner_queue_find_run(queue, "", 1));
    assert_null(runner_queue_find_run(queue, "", 0));
    assert_null(runner_queue_find_run(queue, FIRST, 1));
    assert_null(runner_queue_find_run(queue, FIRST, 0));
}

static void a_run_begins_when_all_runs_and_queued_lines_fit(void **state)
{
    runner_weight_t weight = {.begun = 2 * RUNNER_WEIGHT_SMALL};
    runner_queue_t *queue = make_queue(*state);

    queue->memory_max = 10 * RUNNER_WEIGHT_SMALL;
    assert_true(runner_queue_admits(queue, 8 * RUNNER_WEIGHT_SMALL, weight));
    assert_false(
        runner_queue_admits(queue, 8 * RUNNER_WEIGHT_SMALL + 1, weight));
    add(queue, "{}");
    assert_false(runner_queue_admits(queue, 8 * RUNNER_WEIGHT_SMALL, weight));
}

static void a_small_run_and_a_run_that_is_alone_never_wait(void **state)
{
    runner_weight_t small = {.begun = RUNNER_WEIGHT_SMALL};
    runner_weight_t large = {.begun = SIZE_MAX / 2};
    runner_queue_t *queue = make_queue(*state);

    assert_true(runner_queue_admits(queue, SIZE_MAX / 2, small));
    assert_true(runner_queue_admits(queue, 0, large));
}

static void a_lighter_entry_overtakes_the_others(void **state)
{
    runner_weight_t heavy = {.begun = 9 * RUNNER_WEIGHT_SMALL};
    runner_queue_t *queue = make_queue(*state);
    runner_queue_entry_t *entry;

    queue->memory_max = 10 * RUNNER_WEIGHT_SMALL;
    runner_queue_add(queue, "{}", 2, heavy);
    assert_null(runner_queue_find(queue, 5 * RUNNER_WEIGHT_SMALL));
    add(queue, "[1]");
    entry = runner_queue_find(queue, 5 * RUNNER_WEIGHT_SMALL);
    assert_non_null(entry);
    assert_string_equal(entry->text, "[1]");
}

static void the_queue_is_full_at_its_limit_of_bytes(void **state)
{
    runner_queue_t *queue = make_queue(*state);

    queue->bytes_max = 4;
    add(queue, "[1]");
    assert_false(runner_queue_is_full(queue));
    add(queue, "1");
    assert_true(runner_queue_is_full(queue));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(an_entry_is_found_by_its_run_and_epoch),
        CHECK_TEST(an_id_in_a_nested_object_is_ignored),
        CHECK_TEST(a_line_without_a_run_id_is_never_found),
        CHECK_TEST(a_run_begins_when_all_runs_and_queued_lines_fit),
        CHECK_TEST(a_small_run_and_a_run_that_is_alone_never_wait),
        CHECK_TEST(a_lighter_entry_overtakes_the_others),
        CHECK_TEST(the_queue_is_full_at_its_limit_of_bytes),
    };

    return CHECK_RUN(tests);
}
