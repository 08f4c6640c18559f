/* SPDX-License-Identifier: Apache-2.0 */
/* The paths of deployments on a platform host: /deployments/NAME, and what is
 * below it. */
#ifndef AGENT_AUTH_DEPLOYMENT_PATH_H
#define AGENT_AUTH_DEPLOYMENT_PATH_H

/* Registers the hook that answers where no location serves the NAME; called
 * with the module's hooks. */
void agent_deployment_path_register(void);

#endif
