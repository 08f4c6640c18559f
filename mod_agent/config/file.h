/* SPDX-License-Identifier: Apache-2.0 */
/* Files that directives name, and secrets in the configuration's memory. */
#ifndef AGENT_CONFIG_FILE_H
#define AGENT_CONFIG_FILE_H

#include <httpd.h>
#include <http_config.h>

/*
 * Reads a file of fewer than limit bytes, in cmd->pool. NULL, with an error
 * message for httpd in *problem, when it cannot be read.
 */
char *agent_config_read_file(const char **problem, cmd_parms *cmd,
                             const char *path, apr_size_t limit);

/* Overwrites the bytes when pool ends: the memory is reused after a restart and
 * inherited by children. */
void agent_config_erase_with_pool(void *bytes, apr_size_t length,
                                  apr_pool_t *pool);

#endif
