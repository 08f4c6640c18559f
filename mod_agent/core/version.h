/* SPDX-License-Identifier: Apache-2.0 */
/* The version of the module and its programs. */
#ifndef AGENT_CORE_VERSION_H
#define AGENT_CORE_VERSION_H

#define AGENT_VERSION "0.1.0"

#endif
