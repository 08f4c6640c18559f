/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: config/application.c config/member.c core/json.c core/scan.c */
/* OBJECTS: core/scan_error.c core/scan_key.c core/error.c core/unescape.c */
/* langgraph.json as httpd reads it; see config/application.h. */
#include "check.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include <apr_strings.h>

#include "../../mod_agent/config/application.h"

typedef struct folder_t {
    apr_pool_t *pool;
    char path[64];
    char file[96];
    agent_application_t application;
    agent_application_file_t read;
} folder_t;

static void make_folder(folder_t *folder)
{
    *folder = (folder_t){.path = "/tmp/agent-test-application.XXXXXX"};
    apr_pool_create(&folder->pool, NULL);
    assert_non_null(mkdtemp(folder->path));
    snprintf(folder->file, sizeof(folder->file), "%s/langgraph.json",
             folder->path);
    folder->application.name = "shop";
    folder->application.directory = folder->path;
}

static void remove_folder(folder_t *folder)
{
    unlink(folder->file);
    assert_int_equal(rmdir(folder->path), 0);
    apr_pool_destroy(folder->pool);
}

static void write_text(const folder_t *folder, const char *text, size_t length)
{
    FILE *file = fopen(folder->file, "we");

    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, length, file), length);
    fclose(file);
}

static const char *read_folder(folder_t *folder)
{
    return agent_application_read(&folder->application, &folder->read,
                                  folder->pool, folder->pool);
}

static const char *read_text(folder_t *folder, const char *text)
{
    write_text(folder, text, strlen(text));
    return read_folder(folder);
}

static const agent_application_graph_t *graph_of(const folder_t *folder, int i)
{
    return &APR_ARRAY_IDX(folder->read.graphs, i, agent_application_graph_t);
}

static void graphs_are_read_with_paths_and_descriptions(void **state)
{
    folder_t folder;

    make_folder(&folder);
    assert_null(read_text(
        &folder,
        "{\"dependencies\":[\".\"],\"graphs\":{\"Deep Research\":"
        "\"./src/agent.py:graph\",\"b\":{\"path\":\"pkg.mod:make\","
        "\"description\":\"of b\"},\"c\":{\"path\":\"x.py:c\"}},"
        "\"env\":\".env\",\"auth\":null,\"python_version\":\"3.12\"}"));
    assert_false(folder.application.is_node);
    assert_int_equal(folder.read.graphs->nelts, 3);
    assert_string_equal(graph_of(&folder, 0)->name, "Deep Research");
    assert_string_equal(graph_of(&folder, 0)->path, "./src/agent.py:graph");
    assert_null(graph_of(&folder, 0)->description);
    assert_string_equal(graph_of(&folder, 1)->path, "pkg.mod:make");
    assert_string_equal(graph_of(&folder, 1)->description, "of b");
    assert_null(graph_of(&folder, 2)->description);
    remove_folder(&folder);
}

static void the_language_follows_from_the_files(void **state)
{
    static const struct {
        const char *text;
        bool is_node;
        bool has_typescript;
    } rows[] = {
        {"{\"graphs\":{\"a\":\"./a.py:g\"}}", false, false},
        {"{\"graphs\":{\"a\":\"pkg.mod:g\"}}", false, false},
        {"{\"graphs\":{\"a\":\"./a.ts.py:g\"}}", false, false},
        {"{\"graphs\":{\"a\":\"./a.ts:g\"}}", true, true},
        {"{\"graphs\":{\"a\":\"./a.mjs:g\"}}", true, false},
        {"{\"graphs\":{\"a\":\"./a.tsx:g\",\"b\":\"./b.cjs:g\"}}", true, true},
        {"{\"graphs\":{\"a\":\"./a:g\"},\"node_version\":\"20\"}", true, false},
        {"{\"graphs\":{\"a\":\"./a:g\"},\"node_version\":null}", false, false},
        /* For the pages of `ui`. */
        {"{\"graphs\":{\"a\":\"./a.py:g\"},\"node_version\":\"20\"}", false,
         false},
    };
    folder_t folder;

    make_folder(&folder);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_null(read_text(&folder, rows[i].text));
        assert_int_equal(folder.application.is_node, rows[i].is_node);
        assert_int_equal(folder.read.has_typescript, rows[i].has_typescript);
    }
    remove_folder(&folder);
}

typedef struct refusal_t {
    const char *text;
    const char *expected;
    const char *got;
} refusal_t;

static void expect_refusals(const refusal_t *rows, size_t count)
{
    folder_t folder;

    make_folder(&folder);
    for (size_t i = 0; i < count; i++) {
        const char *problem = read_text(&folder, rows[i].text);

        assert_non_null(problem);
        assert_non_null(strstr(problem, "AgentApplication shop: expected "));
        assert_non_null(strstr(problem, rows[i].expected));
        assert_non_null(strstr(problem, folder.file));
        assert_non_null(strstr(strstr(problem, ", got "), rows[i].got));
    }
    remove_folder(&folder);
}

static void a_member_of_another_type_is_refused(void **state)
{
    static const refusal_t rows[] = {
        {"{\"graphs\":{\"b\":\"b.py:g\"},\"env\":5}",
         "a file name, a list of texts or an object as env", "int"},
        {"{\"graphs\":{\"b\":\"b.py:g\"},\"dependencies\":[\".\",1]}",
         "a list of texts as dependencies", "other values in it"},
        {"{\"graphs\":{\"b\":\"b.py:g\"},\"dependencies\":\".\"}",
         "a list of texts as dependencies", "string"},
        {"{\"graphs\":{\"b\":\"b.mjs:g\"},\"node_version\":20}",
         "a text as node_version", "int"},
        {"{\"graphs\":{\"b\":\"b.py:g\"},\"python_version\":3.12}",
         "a text as python_version", "double"},
        {"{\"graphs\":{\"b\":\"b.py:g\"},\"python_version\":\"3.11abc\"}",
         "a version as python_version", "\"3.11abc\""},
        {"{\"graphs\":{\"b\":\"b.mjs:g\"},\"node_version\":\"20.\"}",
         "a version as node_version", "\"20.\""},
        {"{\"graphs\":{\"b\":\"b.py:g\"},\"checkpointer\":[]}",
         "an object as checkpointer", "array"},
        {"{\"graphs\":{\"b\":\"b.py:g\"},\"checkpointer\":"
         "{\"serde\":{\"allowed_json_modules\":{}}}}",
         "a list, true or false as checkpointer.serde.allowed_json_modules",
         "object"},
        {"{\"graphs\":{\"b\":\"b.py:g\"},\"http\":{\"disable_store\":\"no\"}}",
         "true or false as http.disable_store", "string"},
        {"{\"graphs\":{\"b\":\"b.py:g\"},\"webhooks\":{\"url\":true}}",
         "an object as webhooks.url", "boolean"},
    };

    expect_refusals(rows, sizeof(rows) / sizeof(rows[0]));
}

static void an_error_names_the_line_or_the_member(void **state)
{
    static const refusal_t rows[] = {
        {"", "JSON", "an empty file"},
        {" ", "JSON", "line 1, column 2: it is not JSON"},
        {"{\n\"graphs\": {\n,}}", "JSON", "line 3, column 1: it is not JSON"},
        {"{\n\"graphs\": {\"a\":\"a.py:g\",\n\"a\":\"a.py:g\"}}", "JSON",
         "line 3, /graphs/a: it is a duplicate key"},
        {"{\"x\":\"\xff\"}", "JSON", "line 1, column 8: it is not valid UTF-8"},
        {"[]", "an object", "array"},
        {"{}", "an object with 1 to 200 graphs as graphs", "nothing"},
        {"{\"graphs\":null}", "an object with 1 to 200 graphs as graphs",
         "nothing"},
        {"{\"graphs\":[]}", "an object with 1 to 200 graphs as graphs",
         "array"},
        {"{\"graphs\":{}}", "an object with 1 to 200 graphs as graphs", "0"},
        {"{\"graphs\":{\"a\":1}}", "FILE:NAME as graphs.a", "int"},
        {"{\"graphs\":{\"a\":null}}", "FILE:NAME as graphs.a", "nothing"},
        {"{\"graphs\":{\"a\":\"a.py\"}}", "FILE:NAME as graphs.a", "\"a.py\""},
        {"{\"graphs\":{\"a\":\":g\"}}", "FILE:NAME as graphs.a", "\":g\""},
        {"{\"graphs\":{\"a\":\"a.py:\"}}", "FILE:NAME as graphs.a",
         "\"a.py:\""},
        {"{\"graphs\":{\"a\":{}}}", "FILE:NAME as graphs.a.path", "nothing"},
        {"{\"graphs\":{\"a\":{\"path\":[]}}}", "FILE:NAME as graphs.a.path",
         "array"},
        {"{\"graphs\":{\"a\":{\"path\":\"a.py:g\",\"description\":{}}}}",
         "a text as graphs.a.description", "object"},
        {"{\"graphs\":{\"\":\"a.py:g\"}}", "names of graphs of 1 to 64 bytes",
         "\"\""},
        {"{\"graphs\":{\"a\\nb\":\"a.py:g\"}}",
         "names of graphs of 1 to 64 bytes", "\"a\\nb\""},
        {"{\"graphs\":{\"12345678901234567890123456789012345678901234567890"
         "123456789012345\":\"a.py:g\"}}",
         "names of graphs of 1 to 64 bytes", "0123456789012345\""},
        {"{\"graphs\":{\"a\":\"a.ts:g\",\"b\":\"b.py:g\"}}",
         "graphs of one language as graphs.b", "Python beside JavaScript"},
        {"{\"graphs\":{\"b\":\"b.py:g\"},\"encryption\":{}}", "no encryption",
         "one"},
        {"{\"graphs\":{\"b\":\"b.py:g\"},\"auth\":{\"path\":\"x\"}}",
         "no auth, unless a third argument ignore-auth", "one"},
    };
    expect_refusals(rows, sizeof(rows) / sizeof(rows[0]));
}

static void without_a_name_an_error_begins_with_the_file(void **state)
{
    folder_t folder;
    const char *problem;

    make_folder(&folder);
    folder.application.name = NULL;
    assert_string_equal(
        read_text(&folder, "{\"graphs\":{\"a\":1}}"),
        "langgraph.json: expected FILE:NAME as graphs.a, got int");
    unlink(folder.file);
    problem = read_folder(&folder);
    assert_non_null(problem);
    assert_ptr_equal(strstr(problem, "langgraph.json: expected a readable"),
                     problem);
    remove_folder(&folder);
}

static void auth_can_be_left_to_httpd(void **state)
{
    folder_t folder;

    make_folder(&folder);
    folder.application.ignores_auth = true;
    assert_null(read_text(
        &folder, "{\"graphs\":{\"b\":\"b.py:g\"},\"auth\":{\"path\":\"x\"}}"));
    remove_folder(&folder);
}

static void expect_no_file(folder_t *folder, const char *reason)
{
    const char *problem = read_folder(folder);

    assert_non_null(problem);
    assert_non_null(strstr(problem, "expected a readable regular file"));
    assert_non_null(strstr(problem, folder->file));
    assert_non_null(strstr(problem, reason));
}

static void only_a_regular_file_is_opened(void **state)
{
    folder_t folder;

    make_folder(&folder);
    expect_no_file(&folder, "No such file");
    /* Opening it would wait for a writer. */
    assert_int_equal(mkfifo(folder.file, 0600), 0);
    expect_no_file(&folder, "Invalid argument");
    unlink(folder.file);
    assert_int_equal(symlink("/dev/zero", folder.file), 0);
    expect_no_file(&folder, "Invalid argument");
    unlink(folder.file);
    /* Reading some files of the kernel waits, or takes what others wait for. */
    assert_int_equal(symlink("/proc/version", folder.file), 0);
    expect_no_file(&folder, "Invalid argument");
    unlink(folder.file);
    assert_int_equal(mkdir(folder.file, 0700), 0);
    expect_no_file(&folder, "Is a directory");
    rmdir(folder.file);
    remove_folder(&folder);
}

static void a_file_system_without_blocks_may_have_the_file(void **state)
{
    folder_t folder;

    make_folder(&folder);
    if (unshare(CLONE_NEWNS) != 0
        || mount("none", "/", "none", MS_REC | MS_PRIVATE, NULL) != 0
        || mount("ramfs", folder.path, "ramfs", 0, NULL) != 0) {
        remove_folder(&folder);
        skip();
    }
    write_text(&folder, "{\"graphs\":{\"a\":\"a.py:g\"}}", 25);
    assert_null(read_folder(&folder));
    assert_int_equal(umount(folder.path), 0);
    rmdir(folder.path);
    apr_pool_destroy(folder.pool);
}

/* A file of that length, valid but for its length. */
static const char *read_long(folder_t *folder, size_t length)
{
    const char *end = "{\"graphs\":{\"b\":\"b.py:g\"}}";
    char *text = apr_palloc(folder->pool, length);

    memset(text, ' ', length);
    memcpy(text + length - strlen(end), end, strlen(end));
    write_text(folder, text, length);
    return read_folder(folder);
}

static void a_file_of_256_KB_is_refused(void **state)
{
    folder_t folder;

    make_folder(&folder);
    assert_null(read_long(&folder, 256 * 1024 - 1));
    assert_non_null(strstr(read_long(&folder, 256 * 1024), "File too large"));
    remove_folder(&folder);
}

/* A file with so many graphs. */
static const char *read_many(folder_t *folder, int count)
{
    apr_array_header_t *texts = apr_array_make(folder->pool, count,
                                               sizeof(const char *));

    for (int i = 0; i < count; i++) {
        APR_ARRAY_PUSH(texts, const char *) = apr_psprintf(
            folder->pool, "\"g%d\":\"a.py:g\"", i);
    }
    return read_text(folder,
                     apr_pstrcat(folder->pool, "{\"graphs\":{",
                                 apr_array_pstrcat(folder->pool, texts, ','),
                                 "}}", NULL));
}

static void an_application_has_200_graphs_at_most(void **state)
{
    folder_t folder;

    make_folder(&folder);
    assert_null(read_many(&folder, 200));
    assert_int_equal(folder.read.graphs->nelts, 200);
    assert_non_null(strstr(read_many(&folder, 201), ", got 201"));
    remove_folder(&folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(graphs_are_read_with_paths_and_descriptions),
        CHECK_TEST(the_language_follows_from_the_files),
        CHECK_TEST(an_error_names_the_line_or_the_member),
        CHECK_TEST(a_member_of_another_type_is_refused),
        CHECK_TEST(without_a_name_an_error_begins_with_the_file),
        CHECK_TEST(auth_can_be_left_to_httpd),
        CHECK_TEST(only_a_regular_file_is_opened),
        CHECK_TEST(a_file_system_without_blocks_may_have_the_file),
        CHECK_TEST(a_file_of_256_KB_is_refused),
        CHECK_TEST(an_application_has_200_graphs_at_most),
    };

    return CHECK_RUN(tests);
}
