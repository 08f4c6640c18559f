/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Warns of exclusions of keys that exclude nobody; see exclusion.h. It reads
 * httpd's configuration tree: mod_authz_core keeps its lines for itself.
 */
#include "exclusion.h"

#include <string.h>
#include <strings.h>

#include <apr_hash.h>

#include "../private.h"
#include "conftree.h"

#define PREFIX "agent-"

typedef struct search_t {
    server_rec *server;
    apr_pool_t *pool;
    /* Of agent_conftree_alias_t, by name. */
    apr_hash_t *aliases;
} search_t;

static bool is_named(const ap_directive_t *node, const char *name)
{
    return strcasecmp(node->directive, name) == 0;
}

/* The words of a Require, as mod_authz_core reads them. */
typedef struct line_t {
    bool is_negated;
    const char *provider;
    /* As written. */
    const char *args;
} line_t;

static line_t read_line(const char *text, apr_pool_t *pool)
{
    line_t line = {false, ap_getword_conf(pool, &text), NULL};

    if (strcasecmp(line.provider, "not") == 0) {
        line.is_negated = true;
        line.provider = ap_getword_conf(pool, &text);
    }
    line.args = text;
    return line;
}

/* With the provider in place of an alias. */
static line_t resolve(const search_t *search, const char *text)
{
    line_t line = read_line(text, search->pool);
    const agent_conftree_alias_t *alias = apr_hash_get(
        search->aliases, line.provider, APR_HASH_KEY_STRING);

    if (alias != NULL) {
        line.provider = alias->provider;
        line.args = alias->args;
    }
    return line;
}

/* Providers of httpd that grant requests of any client. */
static bool needs_no_user(const char *provider)
{
    static const char *const providers[] = {
        "env",    "expr", "forward-dns",      "host", "ip", "local",
        "method", "ssl",  "ssl-verify-client"};

    for (size_t i = 0; i < sizeof(providers) / sizeof(*providers); i++) {
        if (strcmp(provider, providers[i]) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_own_provider(const char *provider)
{
    return strncmp(provider, PREFIX, strlen(PREFIX)) == 0;
}

/* of_keys: a user of httpd is one with a key. */
static bool line_demands_key(const line_t *line, bool of_keys)
{
    if (line->is_negated) {
        return false;
    }
    if (strcmp(line->provider, "all") == 0) {
        return strcasecmp(line->args, "denied") == 0;
    }
    return is_own_provider(line->provider)
        || (of_keys && !needs_no_user(line->provider));
}

/* Whether a line or section denies each request without a key. */
static bool demands_key(const search_t *search, const ap_directive_t *node,
                        bool of_keys)
{
    const bool is_any = is_named(node, "<RequireAny");

    if (is_named(node, "Require")) {
        const line_t line = resolve(search, node->args);

        return line_demands_key(&line, of_keys);
    }
    if (!is_any && !is_named(node, "<RequireAll")) {
        return false;
    }
    /* Each of a <RequireAny> must, one of a <RequireAll>. */
    for (const ap_directive_t *child = node->first_child; child != NULL;
         child = child->next) {
        if (demands_key(search, child, of_keys) != is_any) {
            return !is_any;
        }
    }
    return is_any && node->first_child != NULL;
}

/* The last one in the section is in force; NULL: there is none. */
static const ap_directive_t *find_type(const ap_directive_t *section)
{
    const ap_directive_t *found = NULL;

    for (const ap_directive_t *child = section->first_child; child != NULL;
         child = child->next) {
        found = is_named(child, "AuthType") ? child : found;
    }
    return found;
}

/* Whether the users of a line may be those of keys: sections that do not
 * enclose it may have its AuthType too. */
static bool is_of_keys(const ap_directive_t *directive)
{
    const ap_directive_t *type = NULL;

    while (type == NULL && directive->parent != NULL) {
        directive = directive->parent;
        type = find_type(directive);
    }
    return type == NULL || agent_conftree_is_word(type->args, "AgentKey");
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

static bool is_effective(const search_t *search,
                         const ap_directive_t *exclusion)
{
    const ap_directive_t *section = exclusion->parent;
    const bool of_keys = is_of_keys(exclusion);

    while (section != NULL && is_named(section, "<RequireAll")) {
        if (demands_key(search, section, of_keys)) {
            return true;
        }
        section = section->parent;
    }
    return section != NULL && is_merged(section);
}

static bool is_alias(const search_t *search, const ap_directive_t *directive)
{
    return apr_hash_get(search->aliases,
                        read_line(directive->args, search->pool).provider,
                        APR_HASH_KEY_STRING)
        != NULL;
}

static void check(const ap_directive_t *directive, void *baton)
{
    const search_t *search = baton;
    const line_t line = resolve(search, directive->args);
    const bool is_inside = !line.is_negated && directive->parent != NULL
        && is_named(directive->parent, "<RequireNone");

    if ((line.is_negated || is_inside) && is_own_provider(line.provider)
        && !is_effective(search, is_inside ? directive->parent : directive)) {
        ap_log_error(APLOG_MARK, APLOG_WARNING, 0, search->server,
                     AGENT_LOGNO(0460) "Require: expected a line that demands "
                                       "a key beside '%s', got none at %s:%d: "
                                       "it excludes %s",
                     directive->args, directive->filename, directive->line_num,
                     is_alias(search, directive) || is_of_keys(directive)
                         ? "nobody"
                         : "everybody");
    }
}

static void add_alias(const ap_directive_t *directive, void *baton)
{
    const search_t *search = baton;
    agent_conftree_alias_t *alias = apr_palloc(search->pool, sizeof(*alias));

    *alias = agent_conftree_read_alias(directive, search->pool);
    apr_hash_set(search->aliases, alias->name, APR_HASH_KEY_STRING, alias);
}

void agent_exclusion_warn(server_rec *server, apr_pool_t *pool)
{
    search_t search = {server, pool, apr_hash_make(pool)};

    agent_conftree_visit(AGENT_CONFTREE_ALIAS, add_alias, &search);
    agent_conftree_visit("Require", check, &search);
}

static bool is_negated(const ap_directive_t *directive, const line_t *line)
{
    bool negated = line->is_negated;

    for (const ap_directive_t *section = directive->parent; section != NULL;
         section = section->parent) {
        if (is_named(section, "<RequireNone")) {
            negated = !negated;
        }
    }
    return negated;
}

typedef struct uses_t {
    const char *alias;
    apr_pool_t *pool;
    bool is_negated;
} uses_t;

static void check_use(const ap_directive_t *directive, void *baton)
{
    uses_t *uses = baton;
    const line_t line = read_line(directive->args, uses->pool);

    if (strcmp(line.provider, uses->alias) == 0
        && is_negated(directive, &line)) {
        uses->is_negated = true;
    }
}

bool agent_exclusion_is_negated(const ap_directive_t *directive,
                                apr_pool_t *pool)
{
    uses_t uses = {NULL, pool, false};

    if (is_named(directive, "Require")) {
        const line_t line = read_line(directive->args, pool);

        return is_negated(directive, &line);
    }
    uses.alias = agent_conftree_read_alias(directive, pool).name;
    agent_conftree_visit("Require", check_use, &uses);
    return uses.is_negated;
}
