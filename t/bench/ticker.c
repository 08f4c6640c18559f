/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: */
/*
 * A runner for the bench: every run writes events at a steady rate, each with
 * its time. input: {"ticks": the number of events, "every_ms": the interval}.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <json-c/json.h>

#define IN_FD    3
#define OUT_FD   4
#define MAX_RUNS 4096
#define LINE_MAX (1024 * 1024)

typedef struct run_t {
    char id[37];
    int epoch;
    int left;
    long long every_us;
    long long next_us;
} run_t;

static run_t runs[MAX_RUNS];
static int run_count;
static char out[LINE_MAX];
static size_t out_used;

static long long now_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec * 1000000LL + now.tv_nsec / 1000;
}

static void flush_out(void)
{
    size_t done = 0;

    while (done < out_used) {
        ssize_t count = write(OUT_FD, out + done, out_used - done);

        if (count < 0 && errno == EAGAIN) {
            struct pollfd fd = {OUT_FD, POLLOUT, 0};

            poll(&fd, 1, -1);
        }
        else if (count < 0 && errno != EINTR) {
            exit(1);
        }
        done += count > 0 ? (size_t)count : 0;
    }
    out_used = 0;
}

#define PRINT(...)                                                             \
    do {                                                                       \
        if (out_used > LINE_MAX - 1024) {                                      \
            flush_out();                                                       \
        }                                                                      \
        out_used += (size_t)snprintf(out + out_used, 1024, __VA_ARGS__);       \
    } while (0)

static json_object *member(json_object *object, const char *key)
{
    json_object *value = NULL;

    json_object_object_get_ex(object, key, &value);
    return value;
}

static const char *text_of(json_object *object, const char *key)
{
    const char *text = json_object_get_string(member(object, key));

    return text != NULL ? text : "";
}

static void start_run(json_object *line)
{
    json_object *input = member(line, "input");
    run_t *run = &runs[run_count];

    if (run_count == MAX_RUNS) {
        exit(1);
    }
    run_count++;
    snprintf(run->id, sizeof(run->id), "%s", text_of(line, "run_id"));
    run->epoch = json_object_get_int(member(line, "epoch"));
    run->left = json_object_get_int(member(input, "ticks"));
    run->every_us = json_object_get_int(member(input, "every_ms")) * 1000LL;
    run->next_us = now_us() + run->every_us;
}

static void end_run(int i)
{
    PRINT("{\"type\":\"end\",\"run_id\":\"%s\",\"epoch\":%d,"
          "\"status\":\"success\",\"error\":null}\n",
          runs[i].id, runs[i].epoch);
    runs[i] = runs[--run_count];
}

static void handle_line(const char *text)
{
    json_object *line = json_tokener_parse(text);
    const char *type = text_of(line, "type");

    if (strcmp(type, "hello") == 0) {
        PRINT("{\"type\":\"ready\",\"graphs\":{\"agent\":{\"schemas\":{},"
              "\"drawing\":{}}},\"slots\":%d}\n",
              MAX_RUNS);
    }
    else if (strcmp(type, "start") == 0) {
        start_run(line);
    }
    else if (strcmp(type, "ping") == 0) {
        PRINT("{\"type\":\"pong\",\"id\":%s}\n", text_of(line, "id"));
    }
    for (int i = run_count - 1; strcmp(type, "cancel") == 0 && i >= 0; i--) {
        if (strcmp(runs[i].id, text_of(line, "run_id")) == 0) {
            end_run(i);
        }
    }
    json_object_put(line);
}

static void tick(void)
{
    for (int i = run_count - 1; i >= 0; i--) {
        run_t *run = &runs[i];
        long long now = now_us();

        if (run->next_us > now) {
            continue;
        }
        PRINT("{\"type\":\"event\",\"run_id\":\"%s\",\"epoch\":%d,"
              "\"event\":\"custom\",\"data\":{\"at\":%lld,"
              "\"text\":\"one of the words of an answer\"}}\n",
              run->id, run->epoch, now);
        run->next_us += run->every_us;
        if (--run->left <= 0) {
            end_run(i);
        }
    }
}

/* Reads available lines; 0 at the end of the input. */
static int read_lines(void)
{
    static char in[8 * LINE_MAX];
    static size_t used;
    ssize_t count = read(IN_FD, in + used, sizeof(in) - 1 - used);
    char *begin = in;
    char *end;

    if (count <= 0) {
        return count < 0 && (errno == EAGAIN || errno == EINTR);
    }
    used += (size_t)count;
    in[used] = '\0';
    while ((end = strchr(begin, '\n')) != NULL) {
        *end = '\0';
        handle_line(begin);
        begin = end + 1;
    }
    used -= (size_t)(begin - in);
    memmove(in, begin, used);
    return 1;
}

int main(void)
{
    for (;;) {
        struct pollfd fd = {IN_FD, POLLIN, 0};

        if (poll(&fd, 1, run_count > 0 ? 2 : -1) > 0 && !read_lines()) {
            return 0;
        }
        tick();
        flush_out();
    }
}
