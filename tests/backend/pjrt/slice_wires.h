/* slice_wires - how the processes of slice_plugin.c reach each other: messages are files of a
 * folder, by the run and the node that they are of. */
#ifndef SLICE_WIRES_H
#define SLICE_WIRES_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { NAME = 512 };

static int node; /* this one */
static char folder[NAME - 64];

static const char *path_of(uint64_t run, int of, bool part, char path[NAME])
{
  snprintf(path, NAME, "%s/%llu.%d%s", folder, (unsigned long long)run, of, part ? ".part" : "");
  return path;
}

static FILE *open_message(uint64_t run, int of, bool write)
{
  char path[NAME];
  return fopen(path_of(run, of, write, path), write ? "we" : "re");
}

static bool finish_message(uint64_t run, FILE *f)
{
  char from[NAME], to[NAME];
  return fclose(f) == 0 &&
         rename(path_of(run, node, true, from), path_of(run, node, false, to)) == 0;
}

static FILE *wait_for_message(uint64_t run, int of)
{
  const char *set = getenv("TEPAL_SLICE_PATIENCE");
  FILE *f = NULL;
  for (long left = 1000 * (set != NULL ? strtol(set, NULL, 10) : 60); left > 0; left--) {
    if ((f = open_message(run, of, false)) != NULL) break;
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
  }
  return f;
}

#endif
