/* SPDX-License-Identifier: Apache-2.0 */
/* The graphs of a pool and of its runners; see graphs.h. */
#include "graphs.h"

#include <string.h>

#include <apr_strings.h>

#include "../../../core/json.h"
#include "../../../core/raw.h"

/* Longest description, and longest runtime of a runner. */
#define MAX_DESCRIPTION 4096
#define MAX_RUNTIME     4096

/* A member whose value is of this type, if it has one. */
typedef struct report_member_t {
    const char *name;
    agent_raw_kind_t kind;
} report_member_t;

/* The members of a report that are stored. */
static const report_member_t report_members[] = {
    {"description", AGENT_RAW_STRING},
    {"schemas", AGENT_RAW_OBJECT},
    {"drawing", AGENT_RAW_OBJECT},
    {"error", AGENT_RAW_OBJECT},
    {"factory", AGENT_RAW_BOOLEAN},
    {"has_subgraphs", AGENT_RAW_BOOLEAN},
    {NULL, AGENT_RAW_NONE},
};

static const report_member_t schemas_members[] = {
    {"input_schema", AGENT_RAW_OBJECT},   {"output_schema", AGENT_RAW_OBJECT},
    {"state_schema", AGENT_RAW_OBJECT},   {"config_schema", AGENT_RAW_OBJECT},
    {"context_schema", AGENT_RAW_OBJECT}, {NULL, AGENT_RAW_NONE},
};

static const report_member_t drawing_members[] = {
    {"nodes", AGENT_RAW_ARRAY},
    {"edges", AGENT_RAW_ARRAY},
    {NULL, AGENT_RAW_NONE},
};

static const report_member_t error_members[] = {
    {"error", AGENT_RAW_STRING},
    {"message", AGENT_RAW_STRING},
    {NULL, AGENT_RAW_NONE},
};

void agent_graphs_init(agent_graph_table_t *table, agent_context_t *context,
                       const agent_pool_config_t *config)
{
    apr_pool_t *pool = context->pool;

    table->context = context;
    table->count = config->graph_count;
    table->graphs = apr_pcalloc(
        pool, (apr_size_t)table->count * sizeof(*table->graphs));
    for (int i = 0; i < table->count; i++) {
        agent_reported_graph_t *graph = &table->graphs[i];

        graph->name = config->graph_ids[i];
        agent_uuid_v5(graph->assistant_id, graph->name);
        agent_buffer_init(&graph->report, pool);
    }
    table->set_max = AGENT_RUNNERS_OF_POOL(config->runners) + 1;
    table->sets = apr_pcalloc(
        pool, (apr_size_t)table->set_max * sizeof(*table->sets));
}

int agent_graphs_find(const agent_graph_table_t *table, const char *name)
{
    for (int i = 0; i < table->count; i++) {
        if (strcmp(table->graphs[i].name, name) == 0) {
            return i;
        }
    }
    return -1;
}

int agent_graphs_find_member(const agent_graph_table_t *table,
                             const agent_member_t *member)
{
    for (int i = 0; i < table->count; i++) {
        if (agent_raw_member_is(member, table->graphs[i].name)) {
            return i;
        }
    }
    return -1;
}

/* The value of a member; NONE when it is absent or null. */
static agent_raw_t get_value(agent_raw_t report, const char *name)
{
    agent_raw_t value = agent_raw_get(report, name);

    return agent_raw_kind(value) == AGENT_RAW_NULL ? (agent_raw_t){NULL, 0}
                                                   : value;
}

static bool has_types(agent_raw_t object, const report_member_t *rows)
{
    for (; rows->name != NULL; rows++) {
        agent_raw_t value = get_value(object, rows->name);

        if (value.length > 0 && agent_raw_kind(value) != rows->kind) {
            return false;
        }
    }
    return true;
}

static bool are_objects(agent_raw_t list)
{
    const char *at = list.text;
    agent_raw_t element;

    while (list.length > 0 && agent_raw_element_next(&element, &at)) {
        if (agent_raw_kind(element) != AGENT_RAW_OBJECT) {
            return false;
        }
    }
    return true;
}

/* Whether clients get what the API promises of a graph. */
static bool is_well_typed(agent_raw_t report)
{
    agent_raw_t drawing = get_value(report, "drawing");

    return has_types(report, report_members)
        && has_types(get_value(report, "schemas"), schemas_members)
        && has_types(get_value(report, "error"), error_members)
        && has_types(drawing, drawing_members)
        && are_objects(get_value(drawing, "nodes"))
        && are_objects(get_value(drawing, "edges"));
}

static const char *check_report(agent_raw_t report)
{
    if (agent_raw_kind(report) != AGENT_RAW_OBJECT) {
        return "it reported a graph without an object";
    }
    if (report.length > AGENT_GRAPH_REPORT_MAX) {
        return "it reported more than 1 MiB of a graph";
    }
    if (!is_well_typed(report)) {
        return "it reported a graph with a member of another type";
    }
    /* Quotes are not counted. */
    return get_value(report, "description").length > MAX_DESCRIPTION + 2
        ? "it reported a description of more than 4 KiB"
        : NULL;
}

/* Finds the report of each graph: reports[i].length is 0 for none. */
static const char *read_reports(agent_raw_t *reports,
                                const agent_graph_table_t *table,
                                const agent_line_t *line)
{
    const char *at = line->graphs;
    agent_member_t member;

    if (line->runtime_length > MAX_RUNTIME) {
        return "it reported a runtime of more than 4 KiB";
    }
    while (agent_raw_member_next(&member, &at)) {
        agent_raw_t report = {member.value, member.value_length};
        int number = agent_graphs_find_member(table, &member);
        const char *wrong;

        if (number < 0) {
            return "it reported a graph that hello does not name";
        }
        if (reports[number].length > 0) {
            return "it reported a graph twice";
        }
        wrong = check_report(report);
        if (wrong != NULL) {
            return wrong;
        }
        reports[number] = report;
    }
    return NULL;
}

/* ---- sets ---- */

/* The set of these graphs; if there is none, a new one, or one that no runner
 * has: there are more sets than the pool can have runners. */
static agent_graph_set_t *find_set(agent_graph_table_t *table, const bool *has)
{
    apr_size_t size = (apr_size_t)table->count * sizeof(*has);
    agent_graph_set_t *unused = table->sets;

    for (int i = 0; i < table->set_count; i++) {
        agent_graph_set_t *set = &table->sets[i];

        if (memcmp(set->has, has, size) == 0) {
            return set;
        }
        if (set->users == 0) {
            unused = set;
        }
    }
    if (table->set_count < table->set_max) {
        unused = &table->sets[table->set_count++];
        unused->has = apr_palloc(table->context->pool, size);
    }
    memcpy(unused->has, has, size);
    unused->is_due = false;
    unused->full_scan_at = 0;
    return unused;
}

agent_graph_set_t *agent_graphs_take_set(agent_graph_table_t *table,
                                         const bool *has)
{
    agent_graph_set_t *set = find_set(table, has);

    set->count = 0;
    for (int i = 0; i < table->count; i++) {
        set->count += has[i];
    }
    set->users++;
    return set;
}

static agent_graph_set_t *take_reported(agent_graph_table_t *table,
                                        const agent_raw_t *reports,
                                        apr_pool_t *pool)
{
    bool *has = apr_pcalloc(pool, (apr_size_t)table->count * sizeof(*has));

    for (int i = 0; i < table->count; i++) {
        has[i] = reports[i].length > 0;
    }
    return agent_graphs_take_set(table, has);
}

void agent_graphs_release(agent_graph_set_t *set)
{
    if (set != NULL) {
        set->users--;
    }
}

/* ---- reports ---- */

/* Appends `,"name":value`. */
static void add_member(agent_buffer_t *out, const char *name, const char *value,
                       apr_size_t length)
{
    agent_buffer_print(out, ",\"%s\":", name);
    agent_buffer_append(out, value, length);
}

/* Keeps a report until it is stored, unless it is the last one again. */
static void keep_report(agent_reported_graph_t *graph, agent_raw_t report,
                        const agent_line_t *line, apr_pool_t *pool)
{
    unsigned char digest[APR_SHA1_DIGESTSIZE];
    apr_sha1_ctx_t hash;
    agent_buffer_t text;

    agent_buffer_init(&text, pool);
    agent_buffer_print(&text, "{\"assistant_id\":\"%s\",\"graph_id\":%s",
                       graph->assistant_id,
                       agent_json_quote(graph->name, pool));
    for (const report_member_t *row = report_members; row->name != NULL;
         row++) {
        agent_raw_t value = get_value(report, row->name);

        if (value.length > 0) {
            add_member(&text, row->name, value.text, value.length);
        }
    }
    if (line->runtime != NULL) {
        add_member(&text, "runtime", line->runtime, line->runtime_length);
    }
    agent_buffer_append(&text, "}", 1);
    apr_sha1_init(&hash);
    apr_sha1_update(&hash, agent_buffer_text(&text),
                    (unsigned int)agent_buffer_length(&text));
    apr_sha1_final(digest, &hash);
    if (memcmp(digest, graph->digest, sizeof(digest)) != 0) {
        memcpy(graph->digest, digest, sizeof(digest));
        agent_buffer_clear(&graph->report);
        agent_buffer_append(&graph->report, agent_buffer_text(&text),
                            agent_buffer_length(&text));
        graph->is_sent = false;
    }
}

/* ---- graphs that end their runners ---- */

static bool has_failed(const agent_reported_graph_t *graph)
{
    return graph->failure != NULL && !graph->is_retried;
}

bool agent_graphs_blame(const agent_graph_table_t *table,
                        agent_reported_graph_t *graph, bool is_warned,
                        const char *reason)
{
    if (has_failed(graph)) {
        return false;
    }
    if (!is_warned || !graph->is_quarantined) {
        graph->is_quarantined = true;
        return false;
    }
    graph->failure = reason;
    graph->retry_at = table->context->now + table->context->timing.import_pause;
    graph->is_retried = false;
    return true;
}

bool *agent_graphs_copy_failed(const agent_graph_table_t *table,
                               apr_pool_t *pool)
{
    bool *failed = apr_palloc(pool, (apr_size_t)table->count * sizeof(*failed));
    bool is_any = false;

    for (int i = 0; i < table->count; i++) {
        failed[i] = has_failed(&table->graphs[i]);
        is_any = is_any || failed[i];
    }
    return is_any ? failed : NULL;
}

void agent_graphs_clear(const agent_graph_table_t *table, const bool *left_out)
{
    for (int i = 0; i < table->count; i++) {
        agent_reported_graph_t *graph = &table->graphs[i];

        /* Another runner may import that one again just now. */
        if (left_out == NULL || !left_out[i]) {
            graph->failure = NULL;
            graph->is_retried = false;
            graph->is_quarantined = false;
        }
    }
}

bool agent_graphs_have_recovered(const agent_graph_table_t *table,
                                 const bool *left_out)
{
    for (int i = 0; i < table->count && left_out != NULL; i++) {
        if (left_out[i] && table->graphs[i].failure == NULL) {
            return true;
        }
    }
    return false;
}

static bool is_due(const agent_graph_table_t *table,
                   const agent_reported_graph_t *graph)
{
    return has_failed(graph) && graph->retry_at <= table->context->now;
}

bool agent_graphs_are_due(const agent_graph_table_t *table)
{
    for (int i = 0; i < table->count; i++) {
        if (is_due(table, &table->graphs[i])) {
            return true;
        }
    }
    return false;
}

static agent_reported_graph_t *find_retried(const agent_graph_table_t *table)
{
    for (int i = 0; i < table->count; i++) {
        if (table->graphs[i].is_retried) {
            return &table->graphs[i];
        }
    }
    return NULL;
}

void agent_graphs_retry(const agent_graph_table_t *table)
{
    if (find_retried(table) != NULL) {
        return;
    }
    for (int i = 0; i < table->count; i++) {
        agent_reported_graph_t *graph = &table->graphs[i];

        if (is_due(table, graph)) {
            graph->is_quarantined = true;
            graph->is_retried = true;
            return;
        }
    }
}

void agent_graphs_postpone(const agent_graph_table_t *table)
{
    agent_reported_graph_t *graph = find_retried(table);

    if (graph != NULL) {
        graph->is_quarantined = false;
        graph->is_retried = false;
    }
}

/* `,"NAME":{...}`: the graph and its error. */
static void print_failure(agent_buffer_t *out, const agent_graph_table_t *table,
                          const agent_reported_graph_t *graph, apr_pool_t *pool)
{
    agent_buffer_print(
        out,
        "%s%s:{\"error\":\"GraphImportError\",\"message\":\"Two processes in "
        "a row have ended while they imported the graph: %s. It is imported "
        "again %d s later, or when the server is restarted.\"}",
        agent_buffer_length(out) > 0 ? "," : "{",
        agent_json_quote(graph->name, pool), graph->failure,
        (int)apr_time_sec(table->context->timing.import_pause));
}

const char *agent_graphs_print_failed(const agent_graph_table_t *table,
                                      apr_pool_t *pool)
{
    bool is_any = false;
    agent_buffer_t text;

    agent_buffer_init(&text, pool);
    for (int i = 0; i < table->count; i++) {
        const agent_reported_graph_t *graph = &table->graphs[i];

        is_any = is_any || graph->is_quarantined || has_failed(graph);
        if (has_failed(graph)) {
            print_failure(&text, table, graph, pool);
        }
    }
    if (agent_buffer_length(&text) == 0) {
        agent_buffer_append(&text, "{", 1);
    }
    agent_buffer_append(&text, "}", 2);
    return is_any ? agent_buffer_text(&text) : NULL;
}

bool agent_graphs_have_reports(const agent_graph_table_t *table)
{
    for (int i = 0; i < table->count; i++) {
        if (agent_buffer_length(&table->graphs[i].report) > 0
            && !table->graphs[i].is_sent) {
            return true;
        }
    }
    return false;
}

void agent_graphs_reset_reports(const agent_graph_table_t *table)
{
    for (int i = 0; i < table->count; i++) {
        memset(table->graphs[i].digest, 0, sizeof(table->graphs[i].digest));
    }
}

const char *agent_graphs_take(agent_graph_table_t *table,
                              agent_graph_set_t **set, const agent_line_t *line)
{
    agent_raw_t *reports;
    const char *wrong;
    apr_pool_t *pool;

    apr_pool_create(&pool, table->context->pool);
    reports = apr_pcalloc(pool, (apr_size_t)table->count * sizeof(*reports));
    wrong = read_reports(reports, table, line);
    if (wrong == NULL) {
        *set = take_reported(table, reports, pool);
        for (int i = 0; i < table->count; i++) {
            if (reports[i].length > 0) {
                keep_report(&table->graphs[i], reports[i], line, pool);
            }
        }
    }
    apr_pool_destroy(pool);
    return wrong;
}
