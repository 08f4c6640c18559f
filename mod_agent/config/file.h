/* SPDX-License-Identifier: Apache-2.0 */
/* Files that directives name, and the erasure of secrets from them. */
#ifndef AGENT_CONFIG_FILE_H
#define AGENT_CONFIG_FILE_H

#include <httpd.h>
#include <http_config.h>

/*
 * Reads a file of fewer than limit bytes, in cmd->pool. NULL, with an error
 * message for httpd in *problem, when it cannot be read.
 */
char *agent_file_read(const char **problem, cmd_parms *cmd, const char *path,
                      apr_size_t limit);

/* Overwrites a secret when pool ends: otherwise its bytes would remain in
 * memory that is reused after a restart and inherited by children. */
void agent_file_erase_with_pool(void *bytes, apr_size_t length,
                                apr_pool_t *pool);

#endif
