/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: */
/*
 * Joins many runs at once, each on its own connection, and measures how long a
 * waiting request takes to notice the end of its run.
 *
 *   joins PORT CONNINFO DEPLOYMENT <commands
 *
 * Reads a line "THREAD RUN" for each join and an empty line; prints "parked"
 * when all have the head of their response. Then it reads commands:
 *
 * - one: ends the run of the next join; prints the microseconds from the
 *   notification to the complete response
 * - all: ends the runs of all other joins together; prints the same for each
 *
 * The end of its input closes the connections.
 */
#include <arpa/inet.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <libpq-fe.h>

#define ID_LENGTH 36
/* Connections without the head of a response: fewer than httpd's backlog. */
#define OPENING 64
#define EVENTS  256
#define OK_LINE "HTTP/1.1 200 "

/* No chunk of a waiting response holds this. */
static const char last_chunk[] = "\r\n0\r\n\r\n";
#define LAST_LENGTH (sizeof(last_chunk) - 1)

typedef struct join_t {
    char thread[ID_LENGTH + 1];
    char run[ID_LENGTH + 1];
    int fd;
    /* The last bytes of the response so far. */
    char tail[LAST_LENGTH];
} join_t;

typedef struct bench_t {
    struct sockaddr_in address;
    PGconn *db;
    const char *deployment;
    join_t *joins;
    size_t count;
    /* The first whose run has not ended. */
    size_t next;
} bench_t;

static void fail(const char *what, const char *why)
{
    fprintf(stderr, "joins: %s: %s\n", what, why);
    exit(1);
}

static double now_usec(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec / 1e3;
}

/* ---- connections ---- */

static void open_join(const bench_t *bench, join_t *join)
{
    char request[256];
    int length = snprintf(request, sizeof(request),
                          "GET /threads/%s/runs/%s/join HTTP/1.1\r\n"
                          "Host: localhost\r\n\r\n",
                          join->thread, join->run);

    join->fd = socket(AF_INET, SOCK_STREAM, 0);
    if (join->fd < 0
        || connect(join->fd, (const struct sockaddr *)&bench->address,
                   sizeof(bench->address))
            != 0) {
        perror("joins: connect");
        exit(1);
    }
    if (write(join->fd, request, (size_t)length) != length) {
        fail("request", "cut");
    }
}

static void append_tail(join_t *join, const char *bytes, size_t length)
{
    if (length >= LAST_LENGTH) {
        memcpy(join->tail, bytes + length - LAST_LENGTH, LAST_LENGTH);
        return;
    }
    memmove(join->tail, join->tail + length, LAST_LENGTH - length);
    memcpy(join->tail + LAST_LENGTH - length, bytes, length);
}

/* The head is sent when the request begins to wait: a client that has it is
 * parked. */
static void await_head(join_t *join)
{
    char head[4096];
    size_t length = 0;

    do {
        ssize_t got = read(join->fd, head + length, sizeof(head) - 1 - length);

        if (got <= 0) {
            fail("no head of a response", join->run);
        }
        length += (size_t)got;
        head[length] = '\0';
    } while (strstr(head, "\r\n\r\n") == NULL);
    if (strncmp(head, OK_LINE, strlen(OK_LINE)) != 0
        || strstr(head, last_chunk) != NULL) {
        fail("a join does not wait", head);
    }
    append_tail(join, head, length);
}

/* True when the response is complete. */
static bool read_more(join_t *join)
{
    char bytes[4096];
    ssize_t got = read(join->fd, bytes, sizeof(bytes));

    if (got <= 0) {
        fail("a response was cut", join->run);
    }
    append_tail(join, bytes, (size_t)got);
    return memcmp(join->tail, last_chunk, LAST_LENGTH) == 0;
}

static void park_all(bench_t *bench)
{
    size_t count = bench->count;

    for (size_t i = 0; i < count + OPENING; i++) {
        if (i < count) {
            open_join(bench, &bench->joins[i]);
        }
        if (i >= OPENING && i - OPENING < count) {
            await_head(&bench->joins[i - OPENING]);
        }
    }
}

/* ---- the database ---- */

static void ask(const bench_t *bench, const char *sql,
                const char *const values[3], int count)
{
    PGresult *result = PQexecParams(bench->db, sql, count, NULL, values, NULL,
                                    NULL, 0);

    if (PQresultStatus(result) != PGRES_TUPLES_OK
        || strcmp(PQgetvalue(result, 0, 0), "f") == 0) {
        fail("a run could not be ended", PQerrorMessage(bench->db));
    }
    PQclear(result);
}

/* "{id,id,...}"; the caller must free it. */
static char *print_ids(const join_t *joins, size_t count, bool of_runs)
{
    char *text = malloc(count * (ID_LENGTH + 1) + 2);
    char *end = text;

    if (text == NULL) {
        fail("ids", "no memory");
    }
    for (size_t i = 0; i < count; i++) {
        *end++ = i == 0 ? '{' : ',';
        memcpy(end, of_runs ? joins[i].run : joins[i].thread, ID_LENGTH);
        end += ID_LENGTH;
    }
    memcpy(end, "}", 2);
    return text;
}

/* As a cancellation and then the supervisor do; returns when the notification
 * was sent. */
static double end_runs(const bench_t *bench, const join_t *joins, size_t count)
{
    char *threads = print_ids(joins, count, false);
    char *runs = print_ids(joins, count, true);
    const char *values[3] = {bench->deployment, threads, runs};
    const char *notified[3] = {runs};
    double start;

    ask(bench,
        "select bool_and(c.code = 'ok')"
        "  from unnest($2::uuid[], $3::uuid[]) as w(thread_id, run_id),"
        "       agent.cancel_run($1::uuid, w.thread_id, w.run_id, 'interrupt')"
        "       c",
        values, 3);
    start = now_usec();
    ask(bench,
        "select agent.notify_runs(array(select r || '!'"
        "                               from unnest($1::text[]) r))",
        notified, 1);
    free(threads);
    free(runs);
    return start;
}

/* ---- commands ---- */

static void wake_one(bench_t *bench)
{
    join_t *join = &bench->joins[bench->next++];
    double start = end_runs(bench, join, 1);

    while (!read_more(join)) {
    }
    printf("%.0f\n", now_usec() - start);
    close(join->fd);
}

static int watch_all(const bench_t *bench)
{
    int epoll_fd = epoll_create1(0);

    for (size_t i = bench->next; i < bench->count; i++) {
        struct epoll_event event = {.events = EPOLLIN,
                                    .data.ptr = &bench->joins[i]};

        if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, bench->joins[i].fd, &event)
            != 0) {
            fail("epoll", "no descriptor");
        }
    }
    return epoll_fd;
}

/* Closing takes a connection out of the set. */
static void wake_all(bench_t *bench)
{
    int epoll_fd = watch_all(bench);
    double start = end_runs(bench, &bench->joins[bench->next],
                            bench->count - bench->next);

    while (bench->next < bench->count) {
        struct epoll_event events[EVENTS];
        int count = epoll_wait(epoll_fd, events, EVENTS, -1);

        for (int i = 0; i < count; i++) {
            join_t *join = events[i].data.ptr;

            if (read_more(join)) {
                printf("%.0f ", now_usec() - start);
                close(join->fd);
                bench->next++;
            }
        }
    }
    printf("\n");
    close(epoll_fd);
}

static void execute(bench_t *bench, const char *command)
{
    if (bench->next == bench->count) {
        fail(command, "no join is left");
    }
    if (strcmp(command, "one\n") == 0) {
        wake_one(bench);
    }
    else if (strcmp(command, "all\n") == 0) {
        wake_all(bench);
    }
    else {
        fail("unknown command", command);
    }
    fflush(stdout);
}

static void read_joins(bench_t *bench)
{
    char line[128];
    size_t room = 0;

    while (fgets(line, sizeof(line), stdin) != NULL && line[0] != '\n') {
        join_t *join;

        if (bench->count == room) {
            room = room * 2 + 1024;
            bench->joins = realloc(bench->joins, room * sizeof(*join));
        }
        if (bench->joins == NULL) {
            fail("ids", "no memory");
        }
        join = &bench->joins[bench->count++];
        memset(join, 0, sizeof(*join));
        if (sscanf(line, "%36s %36s", join->thread, join->run) != 2) {
            fail("expected THREAD RUN, not", line);
        }
    }
}

int main(int argc, char **argv)
{
    bench_t bench = {.address = {.sin_family = AF_INET}};
    char command[16];

    if (argc != 4) {
        fail("usage", "joins PORT CONNINFO DEPLOYMENT");
    }
    bench.address.sin_port = htons((uint16_t)strtoul(argv[1], NULL, 10));
    bench.address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    bench.db = PQconnectdb(argv[2]);
    bench.deployment = argv[3];
    if (PQstatus(bench.db) != CONNECTION_OK) {
        fail("database", PQerrorMessage(bench.db));
    }
    read_joins(&bench);
    park_all(&bench);
    puts("parked");
    fflush(stdout);
    while (fgets(command, sizeof(command), stdin) != NULL) {
        execute(&bench, command);
    }
    PQfinish(bench.db);
    free(bench.joins);
    return 0;
}
