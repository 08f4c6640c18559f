/* SPDX-License-Identifier: Apache-2.0 */
/* The built-in deployment, which the first migration creates, and the limit of
 * names. */
#ifndef AGENT_CORE_DEPLOYMENT_H
#define AGENT_CORE_DEPLOYMENT_H

#define AGENT_DEPLOYMENT_NAME "default"
#define AGENT_DEPLOYMENT_ID   "00000000-0000-0000-0000-000000000001"
/* Characters of a deployment's name: those of a label in the DNS. */
#define AGENT_DEPLOYMENT_NAME_MAX 63

#endif
