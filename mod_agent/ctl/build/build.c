/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of a build; see build.h. */
#include "build.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../core/json.h"
#include "command.h"
#include "directives.h"
#include "manifest.h"
#include "node.h"
#include "../base/output.h"
#include "python.h"
#include "report.h"
#include "user.h"

#define LOCK AGENT_APPLICATION_FOLDER "/build.lock"
#define LOG  AGENT_APPLICATION_FOLDER "/build.log"

/* Says why LOCK could not be opened, by errno. */
static void report_lock(const ctl_build_t *build)
{
    int error = errno;
    const char *directory = build->application.directory;
    const char *user = ctl_user_name(geteuid(), build->pool);
    struct stat info;

    if (error == EACCES && lstat(AGENT_APPLICATION_FOLDER, &info) == 0) {
        ctl_error("%s/" LOCK ": %s: what an earlier build made belongs to %s: "
                  "remove %s/" AGENT_APPLICATION_FOLDER
                  ", or give it to %s (chown -R)",
                  directory, strerror(error),
                  ctl_user_name(info.st_uid, build->pool), directory, user);
    }
    else if (error == EACCES && stat(".", &info) == 0) {
        ctl_error("%s: %s: it belongs to %s, and %s may not write to it: build "
                  "it as its owner, or as root with --user %s",
                  directory, strerror(error),
                  ctl_user_name(info.st_uid, build->pool), user, user);
    }
    else {
        ctl_error("%s/" LOCK ": %s", directory, strerror(error));
    }
}

/* Two builds of one folder at once would write the same packages. Returns the
 * lock, which the end of the process releases; -1 after printing why. */
static int lock_folder(const ctl_build_t *build)
{
    int lock = -1;

    if (mkdir(AGENT_APPLICATION_FOLDER, 0755) == 0 || errno == EEXIST) {
        lock = open(LOCK, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644);
    }
    if (lock < 0) {
        report_lock(build);
        return -1;
    }
    if (flock(lock, LOCK_EX | LOCK_NB) != 0) {
        ctl_error("%s: another build of it is running",
                  build->application.directory);
        close(lock);
        return -1;
    }
    return lock;
}

static bool open_log(const ctl_build_t *build)
{
    if (!ctl_command_open_log(LOG)) {
        ctl_error("%s/" LOG ": %s", build->application.directory,
                  strerror(errno));
        return false;
    }
    ctl_step("Building %s; installers write to its " LOG,
             build->application.directory);
    return true;
}

/* The names are those of langgraph.json, and nothing is from the output of
 * programs, which the application chooses. */
static int print_record(const ctl_build_t *build)
{
    json_object *record = agent_json_own(json_object_new_object(), build->pool);
    json_object *names = json_object_new_array();

    json_object_object_foreach(ctl_manifest_get(&build->manifest, "graphs"),
                               name, graph)
    {
        (void)graph;
        json_object_array_add(names, json_object_new_string(name));
    }
    json_object_object_add(record, "name",
                           json_object_new_string(build->application.name));
    json_object_object_add(record, "graphs", names);
    json_object_object_add(record, "directives", json_object_get(build->lines));
    ctl_output_record(record);
    return ctl_output_flush();
}

static int build_locked(ctl_build_t *build)
{
    if (!open_log(build)
        || !(build->application.is_node ? ctl_node_install(build)
                                        : ctl_python_install(build))) {
        return 1;
    }
    ctl_user_forget_registries(build);
    if (!ctl_report_graphs(build)) {
        return 1;
    }
    ctl_directives_print(build);
    return build->lines != NULL ? print_record(build) : 0;
}

int ctl_build(ctl_build_t *build)
{
    int lock;
    int status;

    ctl_command_init();
    if (!ctl_directives_check(build)) {
        return 2;
    }
    if (!ctl_user_become(build)) {
        return 1;
    }
    if (!ctl_manifest_read(&build->manifest, &build->application, build->pool)
        || !ctl_report_has_runner(build)) {
        return 2;
    }
    lock = lock_folder(build);
    if (lock < 0) {
        return 1;
    }
    status = build_locked(build);
    close(lock);
    return ctl_command_signal() != 0 ? 128 + ctl_command_signal() : status;
}
