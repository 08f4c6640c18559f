/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads langgraph.json; see application.h. The folder may belong to somebody
 * whom the administrator does not trust: the file is opened only if it is a
 * regular file, and error messages quote nothing of it except names of members
 * and paths of graphs.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "application.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <linux/magic.h>

#include <apr_lib.h>
#include <apr_strings.h>

#include "../core/json.h"
#include "../core/scan.h"
#include "member.h"

#define FILE_NAME "langgraph.json"
#define MAX_BYTES ((apr_size_t)256 * 1024)

typedef struct reading_t {
    agent_application_t *application;
    agent_application_file_t *file;
    apr_pool_t *pool;
    apr_pool_t *temp_pool;
} reading_t;

/* ---- errors ---- */

static const char *refuse(const reading_t *reading, const char *expected,
                          const char *got)
{
    if (reading->application->name == NULL) {
        return apr_psprintf(reading->pool, FILE_NAME ": expected %s, got %s",
                            expected, got);
    }
    return apr_psprintf(reading->pool,
                        "AgentApplication %s: expected %s in %s/" FILE_NAME
                        ", got %s",
                        reading->application->name, expected,
                        reading->application->directory, got);
}

static const char *print_type(json_object *value)
{
    return value == NULL ? "nothing"
                         : json_type_to_name(json_object_get_type(value));
}

/* Prints where the scan has stopped; the column is in bytes, from 1. Equal keys
 * are only found at the end of their object, so for these the JSON pointer is
 * printed in place of the column. */
static const char *print_place(const char *text, const agent_scan_t *scan,
                               apr_pool_t *pool)
{
    int line = 1;
    size_t begin = 0;

    for (size_t i = 0; i < scan->offset; i++) {
        if (text[i] == '\n') {
            line++;
            begin = i + 1;
        }
    }
    return scan->code == AGENT_SCAN_DUPLICATE
        ? apr_psprintf(pool, "line %d, %s", line,
                       agent_scan_pointer(scan, pool))
        : apr_psprintf(pool, "line %d, column %d", line,
                       (int)(scan->offset - begin) + 1);
}

static const char *refuse_text(const reading_t *reading,
                               const agent_scan_t *scan, const char *text)
{
    return refuse(reading, "JSON",
                  apr_psprintf(reading->temp_pool, "%s: it %s",
                               print_place(text, scan, reading->temp_pool),
                               agent_scan_reason(scan->code)));
}

/* ---- the file ---- */

/* File systems of the kernel, such as /proc and /sys, store no files and report
 * no blocks; the ones listed here may report none although they store files. */
static bool stores_files(const struct statfs *system)
{
    return system->f_blocks > 0 || system->f_type == RAMFS_MAGIC
        || system->f_type == TMPFS_MAGIC || system->f_type == FUSE_SUPER_MAGIC
        || system->f_type == OVERLAYFS_SUPER_MAGIC;
}

/* Returns a descriptor of the path if it is a regular file, else -1 and errno.
 * Opening a file of another kind may block or have side effects, and so may
 * reading a file of the kernel, such as /proc/kmsg. EWOULDBLOCK: another
 * process holds a lease on the file, for which open() would wait
 * fs.lease-break-time seconds. */
static int open_regular(const char *path, apr_pool_t *temp_pool)
{
    int place = open(path, O_PATH | O_CLOEXEC);
    struct stat info;
    struct statfs system;
    int fd = -1;

    if (place < 0) {
        return -1;
    }
    if (fstat(place, &info) == 0 && fstatfs(place, &system) == 0) {
        errno = S_ISDIR(info.st_mode) ? EISDIR : EINVAL;
        if (S_ISREG(info.st_mode) && stores_files(&system)) {
            fd = open(apr_psprintf(temp_pool, "/proc/self/fd/%d", place),
                      O_RDONLY | O_NONBLOCK | O_CLOEXEC);
        }
    }
    close(place);
    return fd;
}

/* Returns how many bytes were read, at most size; -1 and errno. */
static ssize_t read_all(int fd, char *out, size_t size)
{
    size_t length = 0;
    ssize_t part = 1;

    while (length < size && part > 0) {
        part = read(fd, out + length, size - length);
        length += part > 0 ? (size_t)part : 0;
        if (part < 0 && errno == EINTR) {
            part = 1;
        }
    }
    return part < 0 ? -1 : (ssize_t)length;
}

/* Sets *text, which ends with NUL. */
static const char *read_file(char **text, size_t *length,
                             const reading_t *reading)
{
    const char *path = apr_pstrcat(reading->temp_pool,
                                   reading->application->directory,
                                   "/" FILE_NAME, NULL);
    int fd = open_regular(path, reading->temp_pool);
    ssize_t got = -1;
    char reason[120];
    int number;

    *text = apr_pcalloc(reading->temp_pool, MAX_BYTES + 1);
    if (fd >= 0) {
        got = read_all(fd, *text, MAX_BYTES);
    }
    number = got < 0 ? errno : EFBIG;
    if (fd >= 0) {
        close(fd);
    }
    if (got >= 0 && got < (ssize_t)MAX_BYTES) {
        *length = (size_t)got;
        return NULL;
    }
    return apr_psprintf(
        reading->pool,
        "%s%s: expected a readable regular file "
        "of less than 256 KB, got '%s' (%s)",
        reading->application->name != NULL ? "AgentApplication " : FILE_NAME,
        reading->application->name != NULL ? reading->application->name : "",
        path,
        number == EWOULDBLOCK
            ? "a process holds a lease on it"
            : apr_strerror(APR_FROM_OS_ERROR(number), reason, sizeof(reason)));
}

/* Sets the json of the file. */
static const char *parse(const reading_t *reading)
{
    agent_scan_t scan = {.pool = reading->temp_pool};
    agent_error_t *err;
    size_t length = 0;
    char *text;
    const char *problem = read_file(&text, &length, reading);

    if (problem != NULL) {
        return problem;
    }
    if (length == 0) {
        return refuse(reading, "JSON", "an empty file");
    }
    if (!agent_scan_json(&scan, text, length)) {
        return refuse_text(reading, &scan, text);
    }
    if (agent_json_parse_scanned(&reading->file->json, text, length, &err,
                                 reading->temp_pool)
        != APR_SUCCESS) {
        return refuse(reading, "JSON", err->detail);
    }
    return json_object_is_type(reading->file->json, json_type_object)
        ? NULL
        : refuse(reading, "an object", print_type(reading->file->json));
}

/* ---- graphs ---- */

static bool is_name(const char *text)
{
    size_t length = strlen(text);

    for (size_t i = 0; i < length; i++) {
        if (apr_iscntrl(text[i])) {
            return false;
        }
    }
    return length > 0 && length <= AGENT_APPLICATION_NAME_MAX;
}

/* Whether the text is FILE:NAME, with text before and after the last colon. */
static bool is_path(const char *text)
{
    const char *colon = strrchr(text, ':');

    return colon != NULL && colon > text && colon[1] != '\0';
}

static const char *read_description(agent_application_graph_t *graph,
                                    const reading_t *reading,
                                    json_object *definition)
{
    json_object *value = agent_json_get(definition, "description");

    if (value == NULL) {
        return NULL;
    }
    if (!json_object_is_type(value, json_type_string)) {
        return refuse(reading,
                      apr_pstrcat(reading->temp_pool, "a text as graphs.",
                                  graph->name, ".description", NULL),
                      print_type(value));
    }
    graph->description = apr_pstrdup(reading->pool,
                                     json_object_get_string(value));
    return NULL;
}

/* definition: FILE:NAME, or {"path": FILE:NAME, "description"}. */
static const char *read_graph(const reading_t *reading, const char *name,
                              json_object *definition)
{
    bool is_object = json_object_is_type(definition, json_type_object);
    json_object *path = is_object ? agent_json_get(definition, "path")
                                  : definition;
    agent_application_graph_t *graph;

    if (!is_name(name)) {
        return refuse(reading,
                      "names of graphs of 1 to 64 bytes without control "
                      "characters as members of graphs",
                      agent_json_quote(name, reading->temp_pool));
    }
    if (!json_object_is_type(path, json_type_string)
        || !is_path(json_object_get_string(path))) {
        return refuse(reading,
                      apr_pstrcat(reading->temp_pool, "FILE:NAME as graphs.",
                                  name, is_object ? ".path" : "", NULL),
                      json_object_is_type(path, json_type_string)
                          ? agent_json_quote(json_object_get_string(path),
                                             reading->temp_pool)
                          : print_type(path));
    }
    graph = apr_array_push(reading->file->graphs);
    graph->name = apr_pstrdup(reading->pool, name);
    graph->path = apr_pstrdup(reading->pool, json_object_get_string(path));
    graph->description = NULL;
    return read_description(graph, reading, is_object ? definition : NULL);
}

static const char *read_graphs(const reading_t *reading)
{
    json_object *graphs = agent_json_get(reading->file->json, "graphs");
    int count = json_object_is_type(graphs, json_type_object)
        ? json_object_object_length(graphs)
        : -1;

    if (count < 1 || count > AGENT_APPLICATION_GRAPHS_MAX) {
        return refuse(reading,
                      apr_psprintf(reading->temp_pool,
                                   "an object with 1 to %d graphs as graphs",
                                   AGENT_APPLICATION_GRAPHS_MAX),
                      count < 0
                          ? print_type(graphs)
                          : apr_psprintf(reading->temp_pool, "%d", count));
    }
    json_object_object_foreach(graphs, name, definition)
    {
        const char *problem = read_graph(reading, name, definition);

        if (problem != NULL) {
            return problem;
        }
    }
    return NULL;
}

/* ---- language ---- */

/* Whether the file of the path has one of these endings. */
static bool has_ending(const char *path, const char *const *endings)
{
    size_t length = (size_t)(strrchr(path, ':') - path);

    for (; *endings != NULL; endings++) {
        size_t size = strlen(*endings);

        if (length > size
            && strncmp(path + length - size, *endings, size) == 0) {
            return true;
        }
    }
    return false;
}

static const char *find_language(const reading_t *reading)
{
    static const char *const of_javascript[] = {".js", ".mjs", ".cjs", NULL};
    static const char *const of_typescript[] = {".ts",  ".tsx", ".mts",
                                                ".cts", ".jsx", NULL};
    static const char *const of_python[] = {".py", NULL};
    agent_application_file_t *file = reading->file;
    const char *in_python = NULL;
    bool is_node = false;

    for (int i = 0; i < file->graphs->nelts; i++) {
        const agent_application_graph_t *graph = &APR_ARRAY_IDX(
            file->graphs, i, const agent_application_graph_t);

        if (has_ending(graph->path, of_typescript)) {
            file->has_typescript = is_node = true;
        }
        is_node = is_node || has_ending(graph->path, of_javascript);
        if (has_ending(graph->path, of_python)) {
            in_python = graph->name;
        }
    }
    if (is_node && in_python != NULL) {
        return refuse(reading,
                      apr_pstrcat(reading->temp_pool,
                                  "graphs of one language as graphs.",
                                  in_python, NULL),
                      "Python beside JavaScript");
    }
    /* In a Python application node_version is that of the pages of `ui`. */
    reading->application->is_node = is_node
        || (in_python == NULL
            && agent_json_get(file->json, "node_version") != NULL);
    return NULL;
}

static const char *check_types(const reading_t *reading)
{
    const char *got;
    const char *expected = agent_member_check(&got, reading->file->json,
                                              reading->temp_pool);

    return expected != NULL ? refuse(reading, expected, got) : NULL;
}

/* A number, and more after dots: 20, 3.12. */
static bool is_version(const char *text)
{
    bool has_digit = false;

    for (; apr_isdigit(*text) || (*text == '.' && has_digit); text++) {
        has_digit = *text != '.';
    }
    return has_digit && *text == '\0';
}

/* After check_types(). */
static const char *check_versions(const reading_t *reading)
{
    static const char *const names[] = {"python_version", "node_version"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        json_object *value = agent_json_get(reading->file->json, names[i]);
        const char *text = value != NULL ? json_object_get_string(value) : NULL;

        if (text != NULL && !is_version(text)) {
            /* Bounded: it returns with the first message. */
            return refuse(reading,
                          apr_pstrcat(reading->temp_pool, "a version as ",
                                      names[i], NULL),
                          agent_json_quote(text, reading->temp_pool));
        }
    }
    return NULL;
}

/* Refuses members that protect the application and that this server does not
 * apply. */
static const char *check_protection(const reading_t *reading)
{
    json_object *file = reading->file->json;

    if (agent_json_get(file, "encryption") != NULL) {
        return refuse(reading, "no encryption, which is not supported", "one");
    }
    return agent_json_get(file, "auth") != NULL
            && !reading->application->ignores_auth
        ? refuse(reading,
                 reading->application->name != NULL
                     ? "no auth, unless a third argument ignore-auth says that "
                       "httpd checks who may use the application"
                     : "no auth, unless --ignore-auth says that httpd checks "
                       "who may use the application",
                 "one")
        : NULL;
}

const char *agent_application_read(agent_application_t *application,
                                   agent_application_file_t *file,
                                   apr_pool_t *pool, apr_pool_t *temp_pool)
{
    reading_t reading = {.application = application,
                         .file = file,
                         .pool = pool,
                         .temp_pool = temp_pool};
    const char *problem;

    file->graphs = apr_array_make(pool, 4, sizeof(agent_application_graph_t));
    file->has_typescript = false;
    file->json = NULL;
    problem = parse(&reading);
    if (problem == NULL) {
        problem = read_graphs(&reading);
    }
    if (problem == NULL) {
        problem = find_language(&reading);
    }
    if (problem == NULL) {
        problem = check_types(&reading);
    }
    if (problem == NULL) {
        problem = check_versions(&reading);
    }
    return problem != NULL ? problem : check_protection(&reading);
}
