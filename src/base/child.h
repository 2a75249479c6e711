/* child - runs a function in a forked child process with limits and reads what it sends.
 *
 *   tp__child_start   forks; body(arg, in, out) runs in the child
 *   tp__child_read    exactly the wanted number of bytes, or an error that says how the child ended
 *   tp__child_end     reaps it; kills it first when it still runs
 *
 * Why: libhdf5 crashes, and may loop, on damaged files, and PJRT plugins abort or wait for ever
 * where their device is not; in a child that is only an error. A library cannot start itself anew
 * with exec, so the child is a plain fork of a process that may have other threads. What keeps that
 * sound:
 *
 *   - Only the forking thread lives on in the child; locks that others held stay locked for ever.
 *     glibc's fork takes the locks of malloc and of stdio's list itself, so malloc works in the
 *     child. The body uses nothing else that is shared with the parent's threads (pools, log sinks,
 *     stdio streams) and leaves by _exit: no atexit handlers, no flushing of the parent's streams.
 *   - libhdf5 is used nowhere in the parent, and a plugin that the parent has loaded is not tried
 * in a child, so their state in the child is always fresh.
 *   - Should a lock be stuck all the same, the wall clock limit turns it into an error.
 *
 * The child has no core dumps (fatal signals end it by _exit), no stderr, and no descriptors but
 * its pipe and `in`. The parent trusts nothing that it reads.
 */
#ifndef TP_CHILD_H
#define TP_CHILD_H

#include <sys/types.h>

#include "base/base.h"

typedef struct tp__child_limits {
  uint64_t memory;      /* bytes of address space beyond what the process has at the fork; 0: any */
  unsigned cpu_seconds; /* processor time; 0: any */
  unsigned wall_seconds; /* from start to end, kept by the parent */
} tp__child_limits;

/* Runs in the child. in: the descriptor given to tp__child_start, or -1. out: the pipe. Returns:
 * the exit code. */
typedef int (*tp__child_fn)(void *arg, int in, int out);

typedef struct tp__child {
  pid_t pid;
  int fd;          /* read end of the pipe */
  double deadline; /* tp__now */
  tp__child_limits limits;
} tp__child;

/* in: a descriptor that the child keeps, or -1; the caller still owns it. Error: TP_ERR_INTERNAL
 * with the system's reason. */
tp_status tp__child_start(tp__child *c, tp__child_fn body, void *arg, int in,
                          const tp__child_limits *limits, tp_error *err) TP_CHECKED;

/* Reads exactly size bytes. Error: TP_ERR_DATA with how the child ended ("crashed", "took longer
 * than 60 s"). */
tp_status tp__child_read(tp__child *c, void *data, size_t size, tp_error *err) TP_CHECKED;

/* Closes the pipe, kills the child if it has not ended, reaps it. Always call it once after a
 * successful start. */
void tp__child_end(tp__child *c);

/* In the child: writes all of it; false when the parent is gone. */
bool tp__child_write(int out, const void *data, size_t size);

#endif
