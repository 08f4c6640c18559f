/* SPDX-License-Identifier: Apache-2.0 */
/* Applications in Python. */
#ifndef AGENT_CTL_PYTHON_H
#define AGENT_CTL_PYTHON_H

#include "build.h"

/* The interpreter of the virtual environment, in the application's folder. */
extern const char ctl_python_program[];

/* Makes the virtual environment, or takes the existing one, and installs
 * the dependencies in it: with uv if PATH has it, else with pip. Returns false,
 * after printing why, if something failed. */
bool ctl_python_install(const ctl_build_t *build);

#endif
