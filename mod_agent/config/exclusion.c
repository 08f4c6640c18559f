/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Warns of exclusions of keys that exclude nobody; see exclusion.h. It reads
 * httpd's configuration tree: mod_authz_core keeps its lines for itself.
 */
#include "exclusion.h"

#include <string.h>
#include <strings.h>

#include <apr_hash.h>
#include <apr_strings.h>

#include "../private.h"
#include "conftree.h"

#define PREFIX "agent-"

typedef struct search_t {
    server_rec *server;
    apr_pool_t *pool;
    /* By the name of each <AuthzProviderAlias>: the line that it stands for. */
    apr_hash_t *aliases;
} search_t;

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

/* A line without `not`, with the provider in place of an alias. */
static const char *resolve(const search_t *search, const char *line)
{
    const char *rest = line;
    const char *name = ap_getword_conf(search->pool, &rest);
    const char *found = apr_hash_get(search->aliases, name,
                                     APR_HASH_KEY_STRING);

    return found != NULL ? found : line;
}

/* Providers of httpd that grant requests of any client. */
static bool needs_no_user(const char *line)
{
    static const char *const providers[] = {
        "env",    "expr", "forward-dns",      "host", "ip", "local",
        "method", "ssl",  "ssl-verify-client"};

    for (size_t i = 0; i < sizeof(providers) / sizeof(*providers); i++) {
        if (skip_word(line, providers[i]) != NULL) {
            return true;
        }
    }
    return false;
}

static bool is_own_provider(const char *line)
{
    return strncasecmp(line, PREFIX, strlen(PREFIX)) == 0;
}

/* of_keys: a user of httpd is one with a key. */
static bool line_demands_key(const char *line, bool of_keys)
{
    const char *whom = skip_word(line, "all");

    if (whom != NULL) {
        return strcasecmp(whom, "denied") == 0;
    }
    return skip_word(line, "not") == NULL
        && (is_own_provider(line) || (of_keys && !needs_no_user(line)));
}

/* Whether a line or section denies each request without a key. */
static bool demands_key(const search_t *search, const ap_directive_t *node,
                        bool of_keys)
{
    const bool is_any = is_named(node, "<RequireAny");

    if (is_named(node, "Require")) {
        return line_demands_key(resolve(search, node->args), of_keys);
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

static void check(const ap_directive_t *directive, void *baton)
{
    const search_t *search = baton;
    const ap_directive_t *exclusion = directive;
    const char *line = skip_word(directive->args, "not");

    if (line == NULL && directive->parent != NULL
        && is_named(directive->parent, "<RequireNone")) {
        line = directive->args;
        exclusion = directive->parent;
    }
    if (line != NULL && is_own_provider(resolve(search, line))
        && !is_effective(search, exclusion)) {
        ap_log_error(APLOG_MARK, APLOG_WARNING, 0, search->server,
                     AGENT_LOGNO(0460) "Require: expected a line that demands "
                                       "a key beside '%s', got none at %s:%d: "
                                       "it excludes %s",
                     directive->args, directive->filename, directive->line_num,
                     resolve(search, line) != line || is_of_keys(directive)
                         ? "nobody"
                         : "everybody");
    }
}

static void add_alias(const ap_directive_t *directive, void *baton)
{
    const search_t *search = baton;
    agent_conftree_alias_t alias = agent_conftree_read_alias(directive,
                                                             search->pool);

    apr_hash_set(
        search->aliases, alias.name, APR_HASH_KEY_STRING,
        apr_pstrcat(search->pool, alias.provider, " ", alias.args, NULL));
}

void agent_exclusion_warn(server_rec *server, apr_pool_t *pool)
{
    search_t search = {server, pool, apr_hash_make(pool)};

    agent_conftree_visit(AGENT_CONFTREE_ALIAS, add_alias, &search);
    agent_conftree_visit("Require", check, &search);
}

static bool line_is_negated(const ap_directive_t *directive)
{
    bool is_negated = skip_word(directive->args, "not") != NULL;

    for (const ap_directive_t *section = directive->parent; section != NULL;
         section = section->parent) {
        if (is_named(section, "<RequireNone")) {
            is_negated = !is_negated;
        }
    }
    return is_negated;
}

typedef struct uses_t {
    const char *alias;
    apr_pool_t *pool;
    bool is_negated;
} uses_t;

static void check_use(const ap_directive_t *directive, void *baton)
{
    uses_t *uses = baton;
    const char *rest = skip_word(directive->args, "not");
    const char *line = rest != NULL ? rest : directive->args;

    if (line_is_negated(directive)
        && strcmp(ap_getword_conf(uses->pool, &line), uses->alias) == 0) {
        uses->is_negated = true;
    }
}

bool agent_exclusion_is_negated(const ap_directive_t *directive,
                                apr_pool_t *pool)
{
    uses_t uses = {NULL, pool, false};

    if (is_named(directive, "Require")) {
        return line_is_negated(directive);
    }
    uses.alias = agent_conftree_read_alias(directive, pool).name;
    agent_conftree_visit("Require", check_use, &uses);
    return uses.is_negated;
}
