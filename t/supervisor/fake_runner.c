/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: */
/*
 * A scripted runner for tests: the input of a run names its action.
 * input.do: noop, step, stream (count, bytes), report, graphs, hang (ends when
 * cancelled), stuck (ignores that), gate (ends, perhaps after count and bytes,
 * when the FIFO `path` was opened and closed), child (hangs, and starts a
 * process), and the hostile ones: see `actions` below.
 * input.without_credit: sends its bytes without requesting credit.
 * input.spent: each later pong says that the runner is to be replaced.
 * input.once: later attempts are noop; drains: on `stop` it sends it as an
 * event, a checkpoint and its end. hello.graphs.*.start: never_ready, exit;
 * import_exits, import_blocks: its import ends or blocks it, without `until`.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/mman.h>

#include <json-c/json.h>

#include "fake_graphs.h"
#include "fake_imports.h"
#include "fake_process.h"
#include "fake_wire.h"

#define IN_FD     3
#define MAX_RUNS  4096
#define LONG_LINE (64 * 1024) /* longer ones need credit */

typedef struct run_t {
    char id[37];
    int epoch;
    /* Length of its last event's data; -1: data that the database refuses. */
    int bytes;
    /* Short events that it sends before that one, without credit. */
    int count;
    int gate; /* polled until it hangs up; -1: none */
    int stuck, without_credit, drains;
} run_t;

static run_t runs[MAX_RUNS];
static int run_count, draining, busy_ms, spent;
static json_object *own_graphs, *failed_graphs;

/* ---- lines to the supervisor ---- */

static void event(const run_t *run, const char *name, const char *data)
{
    say("{\"type\":\"event\",\"run_id\":\"%s\",\"epoch\":%d,\"event\":\"%s\","
        "\"data\":%s}",
        run->id, run->epoch, name, data);
}

static void checkpoint(const run_t *run, const char *message)
{
    static unsigned count;

    /* Version 7 in form; ordered within this process. */
    say("{\"type\":\"checkpoint\",\"run_id\":\"%s\",\"epoch\":%d,"
        "\"checkpoint_id\":\"%.8s-0000-7000-8000-%04x%08x\",\"parent\":null,"
        "\"values\":{\"messages\":[{\"type\":\"ai\",\"content\":\"%s\"}]},"
        "\"next\":[],\"tasks\":[],\"metadata\":{\"source\":\"loop\","
        "\"step\":1,\"writes\":null,\"parents\":{}}}",
        run->id, run->epoch, run->id, (unsigned)getpid() & 0xffff, ++count,
        message);
}

static void end(run_t *run, const char *status)
{
    say("{\"type\":\"end\",\"run_id\":\"%s\",\"epoch\":%d,\"status\":\"%s\","
        "\"error\":null}",
        run->id, run->epoch, status);
    if (run->gate >= 0) {
        close(run->gate);
    }
    *run = runs[--run_count];
}

static void say_bytes(run_t *run)
{
    for (int i = 0; i < run->count; i++) {
        say("{\"type\":\"event\",\"run_id\":\"%s\",\"epoch\":%d,"
            "\"event\":\"custom\",\"data\":{\"token\":%d}}",
            run->id, run->epoch, i);
    }
    if (run->bytes < 0) {
        event(run, "custom", "{\"unstorable\":true}");
    }
    else if (run->bytes > 0) {
        say("{\"type\":\"event\",\"run_id\":\"%s\",\"epoch\":%d,"
            "\"event\":\"custom\",\"data\":\"%0*d\"}",
            run->id, run->epoch, run->bytes, 0);
    }
    end(run, "success");
}

static void pass_gate(run_t *run)
{
    if (run->bytes <= LONG_LINE / 2 || run->without_credit) {
        say_bytes(run);
        return;
    }
    /* 256 bytes are enough for the other members of the line. */
    say("{\"type\":\"want\",\"run_id\":\"%s\",\"epoch\":%d,\"bytes\":%d}",
        run->id, run->epoch, run->bytes + 256);
    if (run->gate >= 0) {
        close(run->gate);
        run->gate = -1;
    }
}

/* ---- actions ---- */

static void do_noop(run_t *run, json_object *input)
{
    end(run, "success");
}

static void do_step(run_t *run, json_object *input)
{
    checkpoint(run, "done");
    event(run, "values", "{\"done\":true}");
    end(run, "success");
}

/* `count` events and one of `bytes`; ten events when both are 0. */
static void do_stream(run_t *run, json_object *input)
{
    run->count += run->bytes == 0 && run->count == 0 ? 10 : 0;
    pass_gate(run);
}

static void do_report(run_t *run, json_object *input)
{
    char text[4096];

    describe_process(text, sizeof(text));
    event(run, "custom", text);
    end(run, "success");
}

/* Sends the graphs of hello. */
static void do_graphs(run_t *run, json_object *input)
{
    event(run, "custom", json_object_to_json_string(own_graphs));
    end(run, "success");
}

static void do_hang(run_t *run, json_object *input)
{
    char data[64];

    snprintf(data, sizeof(data), "{\"pid\":%d}", (int)getpid());
    event(run, "custom", data);
}

static void do_stuck(run_t *run, json_object *input)
{
    do_hang(run, input);
    run->stuck = 1;
}

static void do_gate(run_t *run, json_object *input)
{
    run->gate = open(get(input, "path"), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    do_hang(run, input);
}

/* Hangs; its child leaves its group with "session", and it with "daemon". */
static void do_child(run_t *run, json_object *input)
{
    int session = json_object_object_get_ex(input, "session", NULL);
    int locks = json_object_get_int(json_object_object_get(input, "locks"));
    char data[64];

    snprintf(data, sizeof(data), "{\"pid\":%d,\"runner\":%d}",
             json_object_object_get_ex(input, "daemon", NULL)
                 ? fork_daemon(locks)
                 : fork_child(session),
             (int)getpid());
    event(run, "custom", data);
}

static void do_garbage(run_t *run, json_object *input)
{
    say("this is not JSON");
}

static void do_wrong_run(run_t *run, json_object *input)
{
    say("{\"type\":\"end\",\"run_id\":\"00000000-0000-7000-8000-00000000dead\","
        "\"epoch\":1,\"status\":\"success\",\"error\":null}");
}

static void do_drained(run_t *run, json_object *input)
{
    end(run, "drained");
}

static void do_wrong_epoch(run_t *run, json_object *input)
{
    run->epoch++;
    end(run, "success");
}

static void do_flood(run_t *run, json_object *input)
{
    static char bytes[65536];

    memset(bytes, ' ', sizeof(bytes));
    for (;;) {
        put(bytes, sizeof(bytes));
    }
}

static void do_exit(run_t *run, json_object *input)
{
    exit(0);
}

static void do_abort(run_t *run, json_object *input)
{
    abort();
}

static void do_close(run_t *run, json_object *input)
{
    close(OUT_FD);
}

static void do_mute(run_t *run, json_object *input)
{
    for (;;) {
        pause();
    }
}

static void do_stderr(run_t *run, json_object *input)
{
    int count = get_int(input, "count", 100000);

    for (int i = 0; i < count; i++) {
        fprintf(stderr, "line %d \033[31m%01000d\n", i, 0);
    }
    /* One line of 100 KB. */
    fprintf(stderr, "%0100000d\n", 1);
    fprintf(stderr, "run %s: says so\n", run->id);
    end(run, "success");
}

static void do_after_end(run_t *run, json_object *input)
{
    run_t copy = *run;

    end(run, "success");
    event(&copy, "custom", "1");
}

/* Sets the members that the supervisor adds, and ends the line with space. */
static void do_imitate(run_t *run, json_object *input)
{
    say("{\"d\":[1,{\"r\":2}],\"r\":\"%s\",\"e\":9,\"s\":\"x\",\"m\":{},"
        "\"type\":\"event\",\"run_id\":\"%s\",\"epoch\":%d,"
        "\"event\":\"custom\",\"data\":{\"d\":1,\"s\":2} } \t\r",
        get(input, "other"), run->id, run->epoch);
    end(run, "success");
}

static void do_ready_again(run_t *run, json_object *input)
{
    say("{\"type\":\"ready\",\"graphs\":{},\"slots\":1,"
        "\"runtime\":{\"language\":\"c\"}}");
}

static void do_bad_pong(run_t *run, json_object *input)
{
    say("{\"type\":\"pong\",\"id\":\"1\"}");
}

typedef struct action_t {
    const char *name;
    void (*act)(run_t *run, json_object *input);
} action_t;

/* Hangs with shared memory, which RLIMIT_DATA does not count. */
static void do_share(run_t *run, json_object *input)
{
    size_t size = (size_t)get_int(input, "bytes", 0);

    memset(mmap(NULL, size, PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0), 1,
           size);
}

static const action_t actions[] = {
    {"noop", do_noop},
    {"step", do_step},
    {"stream", do_stream},
    {"report", do_report},
    {"graphs", do_graphs},
    {"hang", do_hang},
    {"stuck", do_stuck},
    {"gate", do_gate},
    {"child", do_child},
    /* Hostile. */
    {"garbage", do_garbage},
    {"wrong_run", do_wrong_run},
    {"wrong_epoch", do_wrong_epoch},
    {"drained", do_drained},
    {"flood", do_flood},
    {"exit", do_exit},
    {"abort", do_abort},
    {"close", do_close},
    {"mute", do_mute},
    {"stderr", do_stderr},
    {"share", do_share},
    {"after_end", do_after_end},
    {"imitate", do_imitate},
    {"ready_again", do_ready_again},
    {"bad_pong", do_bad_pong},
};

/* ---- lines from the supervisor ---- */

static void handle_hello(json_object *line)
{
    json_object *graphs = NULL;
    const char *start;

    json_object_object_get_ex(line, "graphs", &graphs);
    json_object_object_get_ex(line, "failed", &failed_graphs);
    own_graphs = json_object_get(graphs);
    failed_graphs = json_object_get(failed_graphs);
    start = get_start(graphs);
    if (start != NULL && strcmp(start, "exit") == 0) {
        fputs("cannot start\n", stderr);
        exit(3);
    }
    if (start == NULL || strcmp(start, "never_ready") != 0) {
        say_ready(graphs, failed_graphs, MAX_RUNS);
    }
}

/* Like the built-in runner: no run is executed twice at once. */
static void refuse_second(const run_t *run)
{
    for (const run_t *other = runs; other < run; other++) {
        if (strcmp(other->id, run->id) == 0) {
            exit(4);
        }
    }
}

static void handle_start(json_object *line)
{
    run_t *run = &runs[run_count++];
    json_object *input = NULL;
    const char *action = "noop";

    *run = (run_t){.gate = -1};
    snprintf(run->id, sizeof(run->id), "%s", get(line, "run_id"));
    run->epoch = get_int(line, "epoch", 0);
    refuse_second(run);
    json_object_object_get_ex(line, "input", &input);
    run->bytes = get_int(input, "bytes", 0);
    run->count = get_int(input, "count", 0);
    run->without_credit = get(input, "without_credit") != NULL;
    run->drains = get(input, "drains") != NULL;
    spent = spent || get_int(input, "spent", 0) > 0;
    busy_ms = run->epoch == 1 ? get_int(input, "busy_ms", 0) : 0;
    if (get(input, "do") != NULL
        && (get(input, "once") == NULL || run->epoch == 1)) {
        action = get(input, "do");
    }
    for (size_t i = 0; i < sizeof(actions) / sizeof(actions[0]); i++) {
        if (strcmp(action, actions[i].name) == 0) {
            actions[i].act(run, input);
            return;
        }
    }
    end(run, "error");
}

/* The run that the line names; NULL: unknown. */
static run_t *find_run(json_object *line)
{
    for (int i = 0; i < run_count; i++) {
        if (strcmp(runs[i].id, get(line, "run_id")) == 0
            && runs[i].epoch == get_int(line, "epoch", 0)) {
            return &runs[i];
        }
    }
    return NULL;
}

static void handle_cancel(run_t *run)
{
    if (run != NULL && !run->stuck) {
        checkpoint(run, "partial");
        end(run, "interrupted");
    }
}

static void handle_stop(run_t *run, json_object *line)
{
    if (run != NULL && run->drains) {
        event(run, "custom",
              json_object_to_json_string_ext(line, JSON_C_TO_STRING_PLAIN));
        checkpoint(run, "stopped");
        end(run, "drained");
    }
}

static void handle_line(const char *text)
{
    json_object *line = json_tokener_parse(text);
    const char *type = get(line, "type");

    if (strcmp(type, "hello") == 0) {
        handle_hello(line);
    }
    else if (strcmp(type, "start") == 0 && !end_failed(failed_graphs, line)) {
        handle_start(line);
    }
    else if (strcmp(type, "cancel") == 0) {
        handle_cancel(find_run(line));
    }
    else if (strcmp(type, "stop") == 0) {
        handle_stop(find_run(line), line);
    }
    else if (strcmp(type, "go") == 0 && find_run(line) != NULL) {
        say_bytes(find_run(line));
    }
    else if (strcmp(type, "ping") == 0) {
        say("{\"type\":\"pong\",\"id\":%d,\"busy_ms\":%d,\"spent\":%s}",
            get_int(line, "id", 0), busy_ms, spent ? "true" : "false");
    }
    else if (strcmp(type, "drain") == 0) {
        draining = 1;
    }
    json_object_put(line);
}

static void read_input(void)
{
    static char *buffer;
    static size_t size, length;
    char *newline;
    ssize_t got;

    if (size - length < 65536) {
        size = size * 2 + 131072;
        buffer = realloc(buffer, size);
    }
    got = read(IN_FD, buffer + length, size - length);
    if (got <= 0) {
        exit(0);
    }
    length += (size_t)got;
    while ((newline = memchr(buffer, '\n', length)) != NULL) {
        size_t line = (size_t)(newline - buffer) + 1;

        *newline = '\0';
        handle_line(buffer);
        length -= line;
        memmove(buffer, newline + 1, length);
    }
}

int main(void)
{
    static struct pollfd fds[MAX_RUNS + 1];

    while (!draining || run_count > 0) {
        int count = run_count;

        fds[0] = (struct pollfd){.fd = IN_FD, .events = POLLIN};
        for (int i = 0; i < count; i++) {
            fds[i + 1] = (struct pollfd){.fd = runs[i].gate, .events = POLLIN};
        }
        if (poll(fds, (nfds_t)count + 1, -1) < 0) {
            continue;
        }
        /* Downwards: the last run moves to the slot of one that ended. */
        for (int i = count - 1; i >= 0; i--) {
            if (fds[i + 1].revents != 0) {
                pass_gate(&runs[i]);
            }
        }
        if (fds[0].revents != 0) {
            read_input();
        }
    }
    return 0;
}
