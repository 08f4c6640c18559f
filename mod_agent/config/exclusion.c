/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds exclusions of keys, refuses those by an alias, and warns of those that
 * exclude nobody, or everybody without a user; see exclusion.h. Reads httpd's
 * configuration tree, because mod_authz_core does not export its lines.
 */
#include "exclusion.h"

#include <string.h>
#include <strings.h>

#include <apr_hash.h>
#include <apr_strings.h>

#include "../private.h"
#include "conftree.h"

#define PREFIX "agent-"

/* ---- lines ---- */

/* The words of a Require, as mod_authz_core reads them. */
typedef struct line_t {
    bool is_negated;
    const char *provider;
    /* As written. */
    const char *args;
} line_t;

/* httpd.conf, of which each section is read once. */
typedef struct tree_t {
    apr_pool_t *pool;
    /* Of agent_conftree_alias_t, by name. */
    apr_hash_t *aliases;
    /* Of cached_t, by section: the demands of its lines, and its AuthType. */
    apr_hash_t *demands;
    apr_hash_t *types;
} tree_t;

typedef struct cached_t {
    const ap_directive_t *section;
    unsigned value;
} cached_t;

static const cached_t *find_cached(apr_hash_t *of,
                                   const ap_directive_t *section)
{
    return apr_hash_get(of, &section, sizeof(void *));
}

static unsigned add_cached(apr_hash_t *of, const ap_directive_t *section,
                           unsigned value, apr_pool_t *pool)
{
    cached_t *found = apr_palloc(pool, sizeof(*found));

    found->section = section;
    found->value = value;
    apr_hash_set(of, &found->section, sizeof(void *), found);
    return value;
}

static bool is_named(const ap_directive_t *node, const char *name)
{
    return strcasecmp(node->directive, name) == 0;
}

static bool is_section(const ap_directive_t *node, const char *prefix)
{
    return strncasecmp(node->directive, prefix, strlen(prefix)) == 0;
}

static line_t read_line(const ap_directive_t *directive, apr_pool_t *pool)
{
    const char *text = directive->args;
    line_t line = {false, ap_getword_conf(pool, &text), NULL};

    if (strcasecmp(line.provider, "not") == 0) {
        line.is_negated = true;
        line.provider = ap_getword_conf(pool, &text);
    }
    line.args = text;
    return line;
}

/* NULL: the line names none. */
static const agent_conftree_alias_t *find_alias(const tree_t *tree,
                                                const line_t *line)
{
    return apr_hash_get(tree->aliases, line->provider, APR_HASH_KEY_STRING);
}

/* With the provider in place of an alias. */
static line_t resolve(const tree_t *tree, const line_t *line)
{
    const agent_conftree_alias_t *alias = find_alias(tree, line);
    line_t resolved = *line;

    if (alias != NULL) {
        resolved.provider = alias->provider;
        resolved.args = alias->args;
    }
    return resolved;
}

static bool is_own_provider(const char *provider)
{
    return strncmp(provider, PREFIX, strlen(PREFIX)) == 0;
}

/* ---- demands ---- */

/* Whether a line or section denies each request without a user, or each without
 * a key. */
#define DEMANDS_USER 1U
#define DEMANDS_KEY  2U
#define DEMANDS_BOTH (DEMANDS_USER | DEMANDS_KEY)

/* Providers of httpd and mod_auth_openidc that deny every request without a
 * user. Whether others do is not known. */
static bool needs_user(const char *provider)
{
    static const char *const providers[] = {
        "valid-user", "user",        "group",          "claim",
        "dbd-group",  "dbm-group",   "dbm-file-group", "file-group",
        "file-owner", "ldap-user",   "ldap-group",     "ldap-attribute",
        "ldap-dn",    "ldap-filter",
    };

    for (size_t i = 0; i < sizeof(providers) / sizeof(*providers); i++) {
        if (strcmp(provider, providers[i]) == 0) {
            return true;
        }
    }
    return false;
}

static unsigned line_demands(const tree_t *tree,
                             const ap_directive_t *directive)
{
    const line_t named = read_line(directive, tree->pool);
    const line_t line = resolve(tree, &named);

    if (line.is_negated) {
        return 0;
    }
    if (strcmp(line.provider, "all") == 0) {
        return strcasecmp(line.args, "denied") == 0 ? DEMANDS_BOTH : 0;
    }
    if (is_own_provider(line.provider)) {
        return DEMANDS_BOTH;
    }
    return needs_user(line.provider) ? DEMANDS_USER : 0;
}

static unsigned find_demands(const tree_t *tree, const ap_directive_t *node);

/* A <RequireAny> demands what each of its lines demands, a <RequireAll> what
 * any of them demands. */
static unsigned combine_demands(const tree_t *tree, const ap_directive_t *node,
                                bool is_any)
{
    unsigned demands = is_any && node->first_child != NULL ? DEMANDS_BOTH : 0;

    for (const ap_directive_t *child = node->first_child; child != NULL;
         child = child->next) {
        unsigned found = find_demands(tree, child);

        demands = is_any ? demands & found : demands | found;
    }
    return demands;
}

static unsigned find_demands(const tree_t *tree, const ap_directive_t *node)
{
    const bool is_any = is_named(node, "<RequireAny");
    const cached_t *found;

    if (is_named(node, "Require")) {
        return line_demands(tree, node);
    }
    if (!is_any && !is_named(node, "<RequireAll")) {
        return 0;
    }
    found = find_cached(tree->demands, node);
    return found != NULL
        ? found->value
        : add_cached(tree->demands, node, combine_demands(tree, node, is_any),
                     tree->pool);
}

/* Returns the section that an exclusion belongs to; a <RequireNone> is one
 * exclusion as a whole. */
static const ap_directive_t *find_section(const ap_directive_t *directive)
{
    const ap_directive_t *exclusion = directive;

    for (const ap_directive_t *section = directive->parent; section != NULL;
         section = section->parent) {
        exclusion = is_named(section, "<RequireNone") ? section : exclusion;
    }
    return exclusion->parent;
}

/* Returns the demands of the other lines of the exclusion's section and of the
 * <RequireAll> sections around it. *section becomes the first section around
 * these. */
static unsigned find_demands_beside(const tree_t *tree,
                                    const ap_directive_t **section)
{
    unsigned demands = 0;

    while (*section != NULL && is_named(*section, "<RequireAll")) {
        demands |= find_demands(tree, *section);
        *section = (*section)->parent;
    }
    return demands;
}

static bool lacks_demand(const tree_t *tree, const ap_directive_t *directive)
{
    const ap_directive_t *section = find_section(directive);

    return (find_demands_beside(tree, &section) & DEMANDS_USER) == 0;
}

/* ---- exclusions ---- */

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

static void add_alias(const ap_directive_t *directive, void *baton)
{
    const tree_t *tree = baton;
    agent_conftree_alias_t *alias = apr_palloc(tree->pool, sizeof(*alias));

    *alias = agent_conftree_read_alias(directive, tree->pool);
    apr_hash_set(tree->aliases, alias->name, APR_HASH_KEY_STRING, alias);
}

static const tree_t *read_tree(apr_pool_t *pool)
{
    static const char key[] = "agent_exclusion_tree";
    void *data = NULL;
    tree_t *tree;

    apr_pool_userdata_get(&data, key, pool);
    if (data != NULL) {
        return data;
    }
    tree = apr_palloc(pool, sizeof(*tree));
    tree->pool = pool;
    tree->aliases = apr_hash_make(pool);
    tree->demands = apr_hash_make(pool);
    tree->types = apr_hash_make(pool);
    agent_conftree_visit(AGENT_CONFTREE_ALIAS, add_alias, tree);
    apr_pool_userdata_setn(tree, key, NULL, pool);
    return tree;
}

/* Reads the tree only for exclusions, since a .htaccess is read with each
 * request. */
agent_exclusion_t agent_exclusion_read(const ap_directive_t *directive,
                                       apr_pool_t *pool)
{
    agent_exclusion_t exclusion = {false, false};
    line_t line;

    if (!is_named(directive, "Require")) {
        return exclusion;
    }
    line = read_line(directive, pool);
    if (is_negated(directive, &line)) {
        exclusion.is_exclusion = true;
        exclusion.lacks_demand = lacks_demand(read_tree(pool), directive);
    }
    return exclusion;
}

/* ---- aliases ---- */

typedef struct check_t {
    const tree_t *tree;
    const char *problem;
} check_t;

/* Whether `not` or a <RequireNone> negates the line; several may negate it
 * repeatedly. */
static bool is_reversed(const ap_directive_t *directive, const line_t *line)
{
    const ap_directive_t *section = directive->parent;

    while (section != NULL && !is_named(section, "<RequireNone")) {
        section = section->parent;
    }
    return line->is_negated || section != NULL;
}

static void check_use(const ap_directive_t *directive, void *baton)
{
    check_t *check = baton;
    apr_pool_t *pool = check->tree->pool;
    const line_t line = read_line(directive, pool);
    const agent_conftree_alias_t *alias = find_alias(check->tree, &line);

    if (check->problem != NULL || alias == NULL
        || !is_own_provider(alias->provider)
        || !is_reversed(directive, &line)) {
        return;
    }
    check->problem = apr_psprintf(
        pool,
        "Require: expected no <AuthzProviderAlias> of %s with 'not' or in a "
        "<RequireNone>, got '%s' at %s:%d: write %s%s%s%s in its place",
        alias->provider, line.provider, directive->filename,
        directive->line_num, line.is_negated ? "Require not " : "Require ",
        alias->provider, *alias->args != '\0' ? " " : "", alias->args);
}

const char *agent_exclusion_check(apr_pool_t *pool)
{
    check_t check = {read_tree(pool), NULL};

    agent_conftree_visit("Require", check_use, &check);
    return check.problem;
}

/* ---- warnings ---- */

typedef enum auth_type_t {
    TYPE_NONE,
    /* Of some requests, by an <If>. */
    TYPE_CONDITIONAL,
    TYPE_KEYS,
    TYPE_OTHER
} auth_type_t;

static bool has_type(const ap_directive_t *node)
{
    for (; node != NULL; node = node->next) {
        if (is_named(node, "AuthType") || has_type(node->first_child)) {
            return true;
        }
    }
    return false;
}

/* The last one in the section is in force. */
static auth_type_t read_type(const ap_directive_t *section)
{
    auth_type_t type = TYPE_NONE;

    for (const ap_directive_t *child = section->first_child; child != NULL;
         child = child->next) {
        if ((is_section(child, "<If") || is_section(child, "<Else"))
            && has_type(child->first_child)) {
            return TYPE_CONDITIONAL;
        }
        if (is_named(child, "AuthType")) {
            type = agent_conftree_is_word(child->args, "AgentKey") ? TYPE_KEYS
                                                                   : TYPE_OTHER;
        }
    }
    return type;
}

/* The AuthType of the sections around a line. If they have none, one of a
 * location elsewhere may apply. */
static auth_type_t find_type(const tree_t *tree, const ap_directive_t *section)
{
    unsigned type = TYPE_NONE;

    for (; section != NULL && type == TYPE_NONE; section = section->parent) {
        const cached_t *found = find_cached(tree->types, section);

        type = found != NULL
            ? found->value
            : add_cached(tree->types, section, read_type(section), tree->pool);
    }
    return type;
}

/* "Other lines" are those of the section, and those that AuthMerging adds. */
#define NOBODY "nobody whom the other lines admit without a key"

/* Describes the requests that an exclusion excludes where no other line demands
 * a key. */
static const char *print_excluded(auth_type_t type, bool lacks_demand)
{
    if (type == TYPE_KEYS || !lacks_demand) {
        return NOBODY;
    }
    return type == TYPE_OTHER ? "everybody without a user"
                              : NOBODY
        ", or everybody without a user where no AuthType AgentKey applies";
}

typedef struct search_t {
    server_rec *server;
    const tree_t *tree;
} search_t;

static void check(const ap_directive_t *directive, void *baton)
{
    const search_t *search = baton;
    const tree_t *tree = search->tree;
    const line_t line = read_line(directive, tree->pool);
    const ap_directive_t *section = find_section(directive);
    auth_type_t type;
    unsigned demands;

    if (!is_negated(directive, &line)
        || !is_own_provider(resolve(tree, &line).provider)) {
        return;
    }
    type = find_type(tree, directive->parent);
    demands = find_demands_beside(tree, &section);
    if ((demands & DEMANDS_KEY) != 0
        || (type != TYPE_OTHER && (demands & DEMANDS_USER) != 0)) {
        return;
    }
    ap_log_error(APLOG_MARK, APLOG_WARNING, 0, search->server,
                 AGENT_LOGNO(0460) "Require: expected a line that demands a "
                                   "key beside '%s', got none at %s:%d: it "
                                   "excludes %s",
                 directive->args, directive->filename, directive->line_num,
                 print_excluded(type, lacks_demand(tree, directive)));
}

void agent_exclusion_warn(server_rec *server, apr_pool_t *pool)
{
    search_t search = {server, read_tree(pool)};

    agent_conftree_visit("Require", check, &search);
}
