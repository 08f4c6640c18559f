/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Warns of exclusions of keys that exclude nobody; see exclusion.h. It reads
 * httpd's configuration tree: mod_authz_core keeps its lines for itself.
 */
#include "exclusion.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "../private.h"
#include "conftree.h"

#define PREFIX "agent-"

static bool is_named(const ap_directive_t *node, const char *name)
{
    return strcasecmp(node->directive, name) == 0;
}

/* The rest of a line after that word; NULL: it begins with another one. */
static const char *skip_word(const char *line, const char *word)
{
    size_t length = strlen(word);

    return strncasecmp(line, word, length) == 0
            && strchr(" \t", line[length]) != NULL
        ? line + length + strspn(line + length, " \t")
        : NULL;
}

/* Providers of httpd that grant requests of any client. */
static bool needs_no_user(const char *line)
{
    static const char *const providers[] = {
        "all", "env",   "expr",   "forward-dns", "host",
        "ip",  "local", "method", "ssl",         "ssl-verify-client"};

    for (size_t i = 0; i < sizeof(providers) / sizeof(*providers); i++) {
        if (skip_word(line, providers[i]) != NULL) {
            return true;
        }
    }
    return false;
}

/* Whether a line or section denies each request without credentials. */
static bool demands_user(const ap_directive_t *node)
{
    const bool is_any = is_named(node, "<RequireAny");

    if (is_named(node, "Require")) {
        return skip_word(node->args, "not") == NULL
            && !needs_no_user(node->args);
    }
    if (!is_any && !is_named(node, "<RequireAll")) {
        return false;
    }
    /* Each of a <RequireAny> must, one of a <RequireAll>. */
    for (const ap_directive_t *child = node->first_child; child != NULL;
         child = child->next) {
        if (demands_user(child) != is_any) {
            return !is_any;
        }
    }
    return is_any && node->first_child != NULL;
}

/* Whether its lines are combined with those of an outer section, of which one
 * may demand a user. */
static bool is_merged(const ap_directive_t *section)
{
    const ap_directive_t *child = section->first_child;

    while (child != NULL && !is_named(child, "AuthMerging")) {
        child = child->next;
    }
    return child != NULL && strcasecmp(child->args, "Off") != 0;
}

static bool is_effective(const ap_directive_t *exclusion)
{
    const ap_directive_t *section = exclusion->parent;

    while (section != NULL && is_named(section, "<RequireAll")) {
        if (demands_user(section)) {
            return true;
        }
        section = section->parent;
    }
    return section != NULL && is_merged(section);
}

static void check(const ap_directive_t *directive, void *baton)
{
    server_rec *server = baton;
    const ap_directive_t *exclusion = directive;
    const char *line = skip_word(directive->args, "not");

    if (line == NULL && directive->parent != NULL
        && is_named(directive->parent, "<RequireNone")) {
        line = directive->args;
        exclusion = directive->parent;
    }
    if (line != NULL && strncasecmp(line, PREFIX, strlen(PREFIX)) == 0
        && !is_effective(exclusion)) {
        ap_log_error(APLOG_MARK, APLOG_WARNING, 0, server,
                     AGENT_LOGNO(0460) "Require: expected a line that demands "
                                       "a key beside '%s', got none at %s:%d: "
                                       "it excludes nobody",
                     directive->args, directive->filename, directive->line_num);
    }
}

void agent_exclusion_warn(server_rec *server)
{
    agent_conftree_visit("Require", check, server);
}
