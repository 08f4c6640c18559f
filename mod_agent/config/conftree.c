/* SPDX-License-Identifier: Apache-2.0 */
/* Searches httpd's configuration tree; see conftree.h. */
#include "conftree.h"

#include <string.h>
#include <strings.h>

#include <apr_hash.h>
#include <apr_strings.h>

static const char *find_directive(const ap_directive_t *node, const char *name)
{
    const char *found = NULL;

    for (; node != NULL; node = node->next) {
        const char *args = NULL;

        if (strcasecmp(node->directive, name) == 0) {
            args = node->args;
        }
        /* Into <IfModule> and the like, not into virtual hosts. */
        else if (node->first_child != NULL
                 && strncasecmp(node->directive, "<If", 3) == 0) {
            args = find_directive(node->first_child, name);
        }
        found = args != NULL ? args : found;
    }
    return found;
}

bool agent_conftree_is_word(const char *args, const char *word)
{
    size_t quote = args[0] == '"' || args[0] == '\'' ? 1 : 0;
    size_t length = strlen(word);

    return strncasecmp(args + quote, word, length) == 0
        && (quote == 0 || args[quote + length] == args[0])
        && args[quote + length + quote] == '\0';
}

static bool is_host(const ap_directive_t *node)
{
    return strcasecmp(node->directive, "<VirtualHost") == 0;
}

/* with_hosts: also in virtual hosts below. */
static bool has_word(const ap_directive_t *node, const char *name,
                     const char *word, bool with_hosts)
{
    for (; node != NULL; node = node->next) {
        if (strcasecmp(node->directive, name) == 0
            && agent_conftree_is_word(node->args, word)) {
            return true;
        }
        if ((with_hosts || !is_host(node))
            && has_word(node->first_child, name, word, with_hosts)) {
            return true;
        }
    }
    return false;
}

bool agent_conftree_has_word(const char *name, const char *word)
{
    return has_word(ap_conftree, name, word, true);
}

bool agent_conftree_host_has_word(const ap_directive_t *directive,
                                  const char *name, const char *word)
{
    const ap_directive_t *node = directive;

    while (node != NULL && !is_host(node)) {
        node = node->parent;
    }
    return (node != NULL && has_word(node->first_child, name, word, true))
        || has_word(ap_conftree, name, word, false);
}

/* The directives of a section that are the first with their arguments. Bounded:
 * read once by each child. */
static int count(const ap_directive_t *node, const char *name,
                 apr_hash_t *known)
{
    int found = 0;

    for (; node != NULL; node = node->next) {
        if (strcasecmp(node->directive, name) == 0
            && apr_hash_get(known, node->args, APR_HASH_KEY_STRING) == NULL) {
            apr_hash_set(known, node->args, APR_HASH_KEY_STRING, node);
            found++;
        }
        found += count(node->first_child, name, known);
    }
    return found;
}

int agent_conftree_count(const char *name, const char *fallback)
{
    apr_pool_t *scratch;
    apr_hash_t *known;
    int found;

    apr_pool_create(&scratch, NULL);
    known = apr_hash_make(scratch);
    apr_hash_set(known, fallback, APR_HASH_KEY_STRING, fallback);
    found = 1 + count(ap_conftree, name, known);
    apr_pool_destroy(scratch);
    return found;
}

agent_conftree_alias_t agent_conftree_read_alias(
    const ap_directive_t *directive, apr_pool_t *pool)
{
    const char *end = strrchr(directive->args, '>');
    const char *line = end != NULL
        ? apr_pstrmemdup(pool, directive->args, (size_t)(end - directive->args))
        : directive->args;
    agent_conftree_alias_t alias;

    alias.provider = ap_getword_conf(pool, &line);
    alias.name = ap_getword_conf(pool, &line);
    alias.args = ap_getword_conf(pool, &line);
    return alias;
}

static void visit_each(const ap_directive_t *node, const char *name,
                       agent_conftree_visit_t visit, void *baton)
{
    for (; node != NULL; node = node->next) {
        if (strcasecmp(node->directive, name) == 0) {
            visit(node, baton);
        }
        visit_each(node->first_child, name, visit, baton);
    }
}

void agent_conftree_visit(const char *name, agent_conftree_visit_t visit,
                          void *baton)
{
    visit_each(ap_conftree, name, visit, baton);
}

const char *agent_conftree_find(const char *name)
{
    return find_directive(ap_conftree, name);
}
