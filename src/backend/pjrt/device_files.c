/* device_files - devices as the kernel shows them, without their drivers' libraries; see search.h
 *
 * The ids of TPUs are those that JAX looks for (jax/_src/hardware_utils.py, 2026): v2 and v3, plc,
 * v4, v5p, v5e, v6e, 7x, 8i, 8t.
 */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "search.h"

enum { GOOGLE = 0x1ae0 };
static const long tpu_id[] = {0x0027, 0x0056, 0x005e, 0x0062, 0x0063,
                              0x006f, 0x0076, 0x0083, 0x007c};

/* A number of one line, as "0x1ae0"; -1: none. */
static long read_number(const char *folder, const char *name, const char *file)
{
  char *path = tp__format("%s/%s/%s", folder, name, file), line[32] = "", *end = line;
  FILE *f = path != NULL ? fopen(path, "re") : NULL;
  long number = f != NULL && fgets(line, sizeof line, f) != NULL ? strtol(line, &end, 16) : -1;
  if (f != NULL) fclose(f);
  free(path);
  return end != line ? number : -1;
}

int tp__tpu_chips(const char *root)
{
  char *folder = tp__format("%s/sys/bus/pci/devices", root);
  DIR *dir = folder != NULL ? opendir(folder) : NULL;
  int n = 0;
  for (struct dirent *e; dir != NULL && (e = readdir(dir)) != NULL;) {
    if (e->d_name[0] == '.' || read_number(folder, e->d_name, "vendor") != GOOGLE) continue;
    long device = read_number(folder, e->d_name, "device");
    for (size_t i = 0; i < sizeof tpu_id / sizeof *tpu_id; i++) n += tpu_id[i] == device;
  }
  if (dir != NULL) closedir(dir);
  free(folder);
  return n;
}

bool tp__gpu_nodes(const char *root)
{
  static const char *const node[] = {"nvidia0", "nvidiactl", "dxg"};
  bool there = false;
  for (size_t i = 0; !there && i < sizeof node / sizeof *node; i++) {
    char *path = tp__format("%s/dev/%s", root, node[i]);
    there = path != NULL && access(path, F_OK) == 0;
    free(path);
  }
  return there;
}

/* ---- who has a TPU ---- */

static bool is_of_tpu(const char *target)
{
  if (strcmp(target, "/tmp/libtpu_lockfile") == 0) return true;
  if (strncmp(target, "/dev/accel", 10) == 0) return target[10] >= '0' && target[10] <= '9';
  return strncmp(target, "/dev/vfio/", 10) == 0 && target[10] >= '0' && target[10] <= '9';
}

static bool has_tpu_open(const char *proc, const char *pid)
{
  char *folder = tp__format("%s/%s/fd", proc, pid);
  DIR *dir = folder != NULL ? opendir(folder) : NULL; /* fails for other users' processes */
  bool found = false;
  for (struct dirent *e; !found && dir != NULL && (e = readdir(dir)) != NULL;) {
    char target[64];
    ssize_t n = readlinkat(dirfd(dir), e->d_name, target, sizeof target - 1);
    target[n > 0 ? n : 0] = '\0';
    found = is_of_tpu(target);
  }
  if (dir != NULL) closedir(dir);
  free(folder);
  return found;
}

static char *process_text(const char *proc, const char *pid)
{
  char *path = tp__format("%s/%s/comm", proc, pid), name[64] = "";
  FILE *f = path != NULL ? fopen(path, "re") : NULL;
  if (f == NULL || fgets(name, sizeof name, f) == NULL) name[0] = '\0';
  name[strcspn(name, "\n")] = '\0';
  if (f != NULL) fclose(f);
  free(path);
  return name[0] != '\0' ? tp__format("process %s (%s)", pid, name) : tp__format("process %s", pid);
}

char *tp__tpu_user(const char *root)
{
  char *proc = tp__format("%s/proc", root), *text = NULL, self[32];
  DIR *dir = proc != NULL ? opendir(proc) : NULL;
  snprintf(self, sizeof self, "%ld", (long)getpid());
  for (struct dirent *e; text == NULL && dir != NULL && (e = readdir(dir)) != NULL;) {
    if (strspn(e->d_name, "0123456789") != strlen(e->d_name) || strcmp(e->d_name, self) == 0)
      continue;
    if (has_tpu_open(proc, e->d_name)) text = process_text(proc, e->d_name);
  }
  if (dir != NULL) closedir(dir);
  free(proc);
  return text;
}
