/* SPDX-License-Identifier: Apache-2.0 */
/* The lines for webhooks; see webhook.h. */
#include "webhook.h"

#include <stdbool.h>
#include <string.h>

#include <apr_lib.h>
#include <apr_strings.h>

#include "../../core/header.h"
#include "../../core/json.h"
#include "../../core/origin.h"
#include "../base/output.h"
#include "word.h"

/* The longest text of the arguments of AgentWebhookOrigin. */
#define LINE_BYTES_MAX 4096
#define DOMAINS        "webhooks.url.allowed_domains"
#define HEADERS        "webhooks.headers"
/* The most headers of an application: each is a line. */
#define HEADERS_MAX 64

static void print_ports(const ctl_lines_t *lines)
{
    static const char path[] = "webhooks.url.allowed_ports";
    json_object *value = ctl_manifest_get(lines->manifest, path);
    const char *ports = value != NULL
        ? ctl_word_join(value, path, "AgentWebhookPorts", " ", lines->pool)
        : NULL;

    if (ports != NULL && *ports != '\0') {
        ctl_directive(lines->record, "AgentWebhookPorts %s", ports);
    }
}

/* Returns the arguments of a domain, which the library admits on all ports and
 * AgentWebhookOrigin on one; "" after a warning, or where the line would be
 * too long. */
static const char *print_origin(const ctl_lines_t *lines, json_object *text,
                                bool is_https, size_t length)
{
    const char *domain = apr_pstrcat(lines->pool, "https://",
                                     json_object_get_string(text), ":*", NULL);
    agent_origin_pattern_t pattern;

    if (!agent_origin_read_pattern(&pattern, domain)
        || length + 2 * strlen(domain) > LINE_BYTES_MAX) {
        ctl_warn("langgraph.json: one of " DOMAINS " is left out, expected at "
                 "most %d bytes of names of hosts, *. before some, got %s",
                 LINE_BYTES_MAX, agent_json_print(text, lines->pool));
        return "";
    }
    return is_https
        ? apr_pstrcat(lines->pool, " ", domain, NULL)
        : apr_pstrcat(lines->pool, " ", domain, " http", domain + 5, NULL);
}

static void print_webhook_origins(const ctl_lines_t *lines)
{
    bool is_https = json_object_get_boolean(
        ctl_manifest_get(lines->manifest, "webhooks.url.require_https"));
    json_object *list = ctl_manifest_get(lines->manifest, DOMAINS);
    size_t count = list != NULL ? json_object_array_length(list) : 0;
    const char *origins = "";

    /* Bounded: a file of 256 KB, and a line of LINE_BYTES_MAX. */
    for (size_t i = 0; i < count; i++) {
        origins = apr_pstrcat(lines->pool, origins,
                              print_origin(lines,
                                           json_object_array_get_idx(list, i),
                                           is_https, strlen(origins)),
                              NULL);
    }
    if (count == 0 && is_https) {
        origins = " https";
    }
    if (*origins != '\0') {
        ctl_directive(lines->record, "AgentWebhookOrigin%s", origins);
    }
    else if (count > 0) {
        /* Without the line all would be admitted. */
        ctl_directive(lines->record, "AgentWebhooks Off");
    }
}

/* ---- headers ---- */

/* Returns the length of the name at text, which may be a variable's. */
static size_t measure_name(const char *text)
{
    return strspn(text,
                  "abcdefghijklmnopqrstuvwxyz"
                  "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
}

/* Returns what follows `${{ env.NAME }}`, of which it sets the name; NULL:
 * something else, or a name without the prefix. */
static const char *read_variable(const char **name, const char *text,
                                 const char *prefix, apr_pool_t *pool)
{
    size_t length;

    text += 3;
    text += strspn(text, " ");
    if (strncmp(text, "env.", 4) != 0) {
        return NULL;
    }
    text += 4;
    length = measure_name(text);
    *name = apr_pstrmemdup(pool, text, length);
    text += length;
    text += strspn(text, " ");
    return length > 0 && strncmp(*name, prefix, strlen(prefix)) == 0
            && strncmp(text, "}}", 2) == 0
        ? text + 2
        : NULL;
}

/* Whether httpd takes a text as it is. */
static bool is_plain(const char *text)
{
    return ctl_word_can_quote(text) && strstr(text, "%{osenv:") == NULL;
}

/* Returns the value with the variables of AgentWebhookHeader, whose values
 * httpd takes as they are; NULL: a variable is not one of the prefix, or httpd
 * would read something else. */
static const char *convert_value(bool *has_variable, const char *text,
                                 const char *prefix, apr_pool_t *pool)
{
    const char *line = "";

    for (const char *next; (next = strstr(text, "${{")) != NULL; text = next) {
        const char *before = apr_pstrmemdup(pool, text, (size_t)(next - text));
        const char *name;

        next = read_variable(&name, next, prefix, pool);
        if (next == NULL || !is_plain(before)) {
            return NULL;
        }
        *has_variable = true;
        /* Bounded: AGENT_HEADER_VALUE_MAX, of which a variable takes ten. */
        line = apr_pstrcat(pool, line, before, "%{osenv:", name, "}", NULL);
    }
    return is_plain(text) ? apr_pstrcat(pool, line, text, NULL) : NULL;
}

/* Returns the line, in the pool of lines; NULL: it cannot be one. */
static const char *make_line(const ctl_lines_t *lines, bool *has_variable,
                             const char *name, json_object *value)
{
    json_object *member = ctl_manifest_get(lines->manifest,
                                           "webhooks.env_prefix");
    const char *prefix = member != NULL ? json_object_get_string(member)
                                        : "LG_WEBHOOK_";
    const char *text = json_object_is_type(value, json_type_string)
        ? json_object_get_string(value)
        : "";

    if (!agent_header_is_addable(name) || !agent_header_is_value(text)
        || measure_name(prefix) != strlen(prefix)) {
        return NULL;
    }
    text = convert_value(has_variable, text, prefix, lines->pool);
    return text != NULL ? apr_psprintf(lines->pool, "AgentWebhookHeader %s %s",
                                       name, ctl_word_quote(text, lines->pool))
                        : NULL;
}

static bool is_credential(const char *name)
{
    agent_header_pattern_t pattern;

    return agent_header_read_pattern(&pattern, name)
        && agent_header_is_credential(&pattern);
}

/* Any client may choose the receiver of a secret. */
static void warn_of_receivers(const ctl_lines_t *lines)
{
    json_object *list = ctl_manifest_get(lines->manifest, DOMAINS);

    if (list == NULL || json_object_array_length(list) == 0) {
        ctl_warn("langgraph.json: " HEADERS " has what seems to be a secret, "
                 "and each URL that a client names as webhook gets it: limit "
                 "these URLs with AgentWebhookOrigin (" DOMAINS ")");
    }
}

/* The values of the variables, which may be secrets, are not printed. */
static void print_headers(const ctl_lines_t *lines)
{
    json_object *headers = ctl_manifest_get(lines->manifest, HEADERS);
    bool has_variable = false;
    bool has_secret = false;
    int count = 0;

    if (headers == NULL) {
        return;
    }
    json_object_object_foreach(headers, name, value)
    {
        const char *line = ++count <= HEADERS_MAX
            ? make_line(lines, &has_variable, name, value)
            : NULL;

        if (line != NULL) {
            ctl_directive(lines->record, "%s", line);
            has_secret = has_secret || is_credential(name);
        }
        else if (count <= HEADERS_MAX) {
            ctl_warn("langgraph.json: " HEADERS " is left out for %s: expected "
                     "a header that deliveries do not have, and a text whose "
                     "only variables are ${{ env.NAME }} with webhooks."
                     "env_prefix",
                     agent_json_quote(name, lines->pool));
        }
    }
    if (count > HEADERS_MAX) {
        ctl_warn("langgraph.json: " HEADERS " has %d headers, the first %d are "
                 "served",
                 count, HEADERS_MAX);
    }
    if (has_variable) {
        ctl_directive(
            lines->record,
            "# Set %%{osenv:...} in httpd's environment (Debian: envvars), "
            "not in the application's env.");
    }
    if (has_variable || has_secret) {
        warn_of_receivers(lines);
    }
}

void ctl_webhook_print(const ctl_lines_t *lines)
{
    print_ports(lines);
    print_webhook_origins(lines);
    print_headers(lines);
}
